#include "bench/rivals/sklearn_rival.h"

#include <gtest/gtest.h>

#include <fstream>

#include "core/support/error.h"
#include "tests/core/io/temporary_folder.h"
#include "tests/support/message_of.h"

namespace tessera::bench {
namespace {

// scikit-learn's side as a shell script.
class SklearnRivalTest : public ::testing::Test {
 protected:
  SklearnProgram program(const std::string& first) const {
    const std::string script = (folder_.path() / "sklearn.sh").string();
    std::ofstream(script) << "echo '" << first << R"('
while read -r command a b c d; do
case $command in
load) echo '{}' ;;
matmul) echo '{"gflops": 50}' ;;
error) if [ "$a $b $c" = "15 10 -1" ]; then echo '{"error": 0.25}'; fi ;;
time) if [ "$a $b $c $d" = "15 8 2 3" ]; then echo '{"ms": [3, 2, '$OPENBLAS_NUM_THREADS']}'; fi ;;
esac
done
)";
    return {"/bin/sh", script, 7};
  }

 private:
  TemporaryFolder folder_;
};

TEST_F(SklearnRivalTest, AsksAsItsScriptUnderstands) {
  SklearnRival rival(program(R"({"sklearn": "1", "blas": ["openblas 0"], "threads": 7})"));
  EXPECT_EQ(rival.environment().at("sklearn").as_string(), "1");
  rival.load("/x/a.f32", 512);
  EXPECT_EQ(rival.matmul_gflops(), 50);
  EXPECT_EQ(rival.relative_error({"defaults", 10, -1}, 15), 0.25);
  EXPECT_EQ(rival.run({"ours", 8, 2}, 15, 3), (std::vector<double>{3, 2, 7}));
}

TEST_F(SklearnRivalTest, SaysWhatIsMissing) {
  EXPECT_TRUE(message_of<ConfigError>([&] {
                SklearnRival(program(R"({"missing": "no sklearn"})"));
              }).starts_with("scikit-learn: /bin/sh cannot import it: no sklearn; install "));
  EXPECT_TRUE(message_of<InternalError>([&] { SklearnRival(program(R"({"blas": []})")); }).ends_with("not a fair rival"));
  EXPECT_EQ(message_of<ConfigError>([] {
              SklearnRival({"/no/such/python", "x.py"});
            }),
            "scikit-learn: there is no interpreter /no/such/python; name another with --python");
}

}  // namespace
}  // namespace tessera::bench
