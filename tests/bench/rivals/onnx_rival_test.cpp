#include "bench/rivals/onnx_rival.h"

#include <gtest/gtest.h>

#include <fstream>

#include "core/support/error.h"
#include "tests/core/io/temporary_folder.h"
#include "tests/support/message_of.h"

namespace tessera::bench {
namespace {

// ONNX Runtime's side as a shell script; its answers hold what it was started with.
class OnnxRivalTest : public ::testing::Test {
 protected:
  OnnxProgram program(const std::string& first) const {
    const std::string script = (folder_.path() / "onnx.sh").string();
    std::ofstream(script) << "echo '" << first << R"('
started="$*"
while read -r command count; do
case $command in
values) [ "$started" = "m.onnx x.f32 --threads 2 --shape 1 3 4 --spinning" ] || exit 1; echo '{"values": [1, -2.5]}' ;;
time) [ "$started" = "m.onnx x.f32 --threads 1 --shape 1 3 4" ] || exit 1; echo '{"ms": [3, '$count']}' ;;
esac
done
)";
    return {"/bin/sh", script, 2};
  }

  const OnnxQuestion question_{"m.onnx", "x.f32", {1, 3, 4}};

 private:
  TemporaryFolder folder_;
};

TEST_F(OnnxRivalTest, AsksAsItsScriptUnderstands) {
  const OnnxProgram asked = program(R"({"onnxruntime": "1.32.0"})");
  OnnxRival spinning(asked, question_, {2, true});
  EXPECT_EQ(spinning.environment().at("onnxruntime").as_string(), "1.32.0");
  EXPECT_EQ(spinning.values(), (std::vector<double>{1, -2.5}));
  OnnxRival alone(asked, question_, {1, false});
  EXPECT_EQ(alone.run(7), (std::vector<double>{3, 7}));
}

TEST_F(OnnxRivalTest, HasEveryWayToWaitAndOneThread) {
  std::vector<std::string> names;
  for (const OnnxWay& way : onnx_ways(2)) names.push_back(to_string(way));
  EXPECT_EQ(names, (std::vector<std::string>{"2 threads that spin", "2 threads that sleep", "1 thread"}));
  EXPECT_EQ(onnx_ways(1), (std::vector<OnnxWay>{{1, false}}));
}

TEST_F(OnnxRivalTest, SaysWhatIsMissing) {
  EXPECT_TRUE(message_of<ConfigError>([&] {
                OnnxRival(program(R"({"missing": "no onnxruntime"})"), question_, {1, false});
              }).starts_with("ONNX Runtime: /bin/sh cannot import it: no onnxruntime; install "));
  EXPECT_EQ(message_of<ConfigError>([&] {
              OnnxRival({"/no/such/python", "x.py"}, question_, {1, false});
            }),
            "ONNX Runtime: there is no interpreter /no/such/python; name another with --python");
}

}  // namespace
}  // namespace tessera::bench
