// The rival's side is a shell script that answers as torch's would.
#include "bench/torch_rival.h"

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>

#include "bench/infer_rival.h"
#include "core/error.h"
#include "tests/core/io/temporary_folder.h"
#include "tests/support/message_of.h"

namespace tessera::bench {
namespace {

class FakeTorch : public ::testing::Test {
 protected:
  // Answers the cases of `commands`, after the line `first`.
  TorchProgram program(const std::string& first, const std::string& commands) const {
    const std::string script = (folder_.path() / "torch.sh").string();
    std::ofstream(script) << "layout=$4\necho '" << first << "'\nwhile read -r command word count; do\ncase $command in\n"
                          << commands << "\nesac\ndone\n";
    return {"/bin/sh", script, folder_.path(), 2};
  }

 private:
  TemporaryFolder folder_;
};

TEST_F(FakeTorch, ARivalWithASlowProductIsNotFair) {
  TorchRival rival(program(R"({"version": "0"})", R"(matmul) echo '{"gflops": 60}' ;;)"), {});
  EXPECT_EQ(rival.environment().at("version").as_string(), "0");
  EXPECT_EQ(fair_product(rival, [] { return 100.0; }).gflops, 60);
  double peak = 120;  // a processor that was slowed down at first
  EXPECT_EQ(fair_product(rival, [&] { return peak -= 15; }).peak, 90);
  const std::string message = message_of<InternalError>([&] { fair_product(rival, [] { return 101.0; }); });
  EXPECT_TRUE(message.starts_with("torch's matmul reaches 60 of 101 GFLOP/s; needs 0.6 of the peak")) << message;
}

TEST_F(FakeTorch, MissingTorchIsExplained) {
  const auto start = [&] { TorchRival(program(R"({"missing": "no module"})", ""), {}); };
  EXPECT_EQ(message_of<ConfigError>([&] { or_explain_missing_torch(start); }),
            "torch: /bin/sh cannot import it: no module; "
            "install Debian's python3-torch or name another interpreter with --python");
}

// "quick" takes 2 ms in channels_last and 4 ms otherwise, "close" 2.1 ms and 30 ms; "broken" cannot be built, and
// torch ends under "deadly".
constexpr const char* kWays = R"(logits)
  if [ $word = deadly ]; then exit 0; fi
  if [ $word = broken ]; then echo '{"failed": "no such mode"}'; else echo '{"logits": [1, -2, 0.5]}'; fi ;;
time)
  case $word$layout in
    quick--channels-last) ms=2 ;;
    close--channels-last) ms=2.1 ;;
    quick) ms=4 ;;
    *) ms=30 ;;
  esac
  list=$ms
  while [ $count -gt 1 ]; do list="$list, $ms"; count=$((count - 1)); done
  echo "{\"ms\": [$list]}" ;;)";

TEST_F(FakeTorch, TheSweepKeepsTheFastestWaysAndSaysWhatFailed) {
  const TorchProgram torch = program(R"({"modes": ["broken", "deadly", "close", "quick"]})", kWays);
  const InferSweep swept = sweep_ways(torch, 3, {1, -2, 0.5});
  EXPECT_EQ(swept.rows.as_list().size(), 4 * all_torch_settings().size());
  EXPECT_EQ(swept.rows.as_list().at(0).at("failed").as_string(), "no such mode");
  EXPECT_EQ(swept.rows.as_list().at(1).at("failed").as_string(), "child: it ended without an answer (exit status 0)");
  EXPECT_EQ(swept.rows.as_list().at(2).at("ms").as_double(), 2.1);
  const std::size_t with_layout = all_torch_settings().size() / 2;
  ASSERT_EQ(swept.finalists.size(), std::min(kFinalists, 2 * with_layout));
  for (std::size_t i = 0; i < swept.finalists.size(); ++i) {
    EXPECT_TRUE(swept.finalists[i].settings.channels_last);
    EXPECT_EQ(swept.finalists[i].mode, i < with_layout ? "quick" : "close");
  }
  InferRival rival(torch, swept.finalists.front(), {1, -2, 0.5});
  EXPECT_EQ(rival.logit_difference(), 0);
  EXPECT_EQ(rival.run(4), (std::vector<double>{2, 2, 2, 2}));
}

TEST_F(FakeTorch, OtherLogitsVoidTheSweep) {
  const TorchProgram torch = program(R"({"modes": ["quick"]})", kWays);
  const std::string message = message_of<NumericError>([&] { sweep_ways(torch, 1, {1, -2, 0.75}); });
  const std::string start = "logits differ from those of torch quick, channels_last, avx2, default malloc by 0.25";
  EXPECT_TRUE(message.starts_with(start)) << message;
}

TEST(CheckLogits, IsRelativeToTheLargestAndRefusesNaN) {
  EXPECT_NEAR(check_logits({100.005f, 1}, {100, 1}, "torch"), 5e-5, 1e-6);  // half a unit of 1e-4 of 100, in float
  EXPECT_THROW(check_logits({100.02f, 1}, {100, 1}, "torch"), NumericError);
  EXPECT_THROW(check_logits({1, NAN}, {1, NAN}, "torch"), NumericError);
  EXPECT_EQ(message_of<NumericError>([] { check_logits({1, 2}, {1}, "torch"); }), "torch gives 1 logits, ours are 2");
}

}  // namespace
}  // namespace tessera::bench
