#include "bench/rivals/torch_rival.h"

#include <gtest/gtest.h>

#include "core/support/error.h"
#include "tests/bench/fake_torch.h"
#include "tests/support/message_of.h"
#include "tests/support/scopes.h"

namespace tessera::bench {
namespace {

using TorchRivalTest = FakeTorch;

TEST_F(TorchRivalTest, ARivalWithASlowProductIsNotFair) {
  TorchRival rival(program(R"({"version": "0"})", R"(matmul) echo '{"gflops": 60}' ;;)"), {});
  EXPECT_EQ(rival.environment().at("version").as_string(), "0");
  EXPECT_EQ(fair_product(rival, [](int) { return 100.0; }).gflops, 60);
  double peak = 120;  // falls with each attempt, until 60 is at least 0.6 of it
  EXPECT_EQ(fair_product(
                rival, [&](int) { return peak -= 15; }, [] {})
                .peak,
            90);
  int pauses = 0;
  const std::string message = message_of<InternalError>([&] {
    fair_product(
        rival, [](int) { return 101.0; }, [&] { ++pauses; });
  });
  const std::string start =
      "torch's matmul (channels_last, avx2, default malloc) reaches 60 of 101 GFLOP/s; needs 0.6 of the peak";
  EXPECT_TRUE(message.starts_with(start)) << message;
  EXPECT_EQ(pauses, 11);
}

// The first product is fast enough. Those after the measurement of the peak are slow.
TEST_F(TorchRivalTest, AProductBeforeThePeakCounts) {
  TorchRival rival(program(R"({"version": "0"})", R"(matmul) echo "{\"gflops\": ${rate:-100}}"; rate=50 ;;)"), {});
  EXPECT_EQ(fair_product(rival, [](int) { return 100.0; }).gflops, 100);
  EXPECT_THROW(fair_product(
                   rival, [](int) { return 100.0; }, [] {}),
               InternalError);
}

struct Side {
  Side(const TorchProgram& program, const TorchSettings& settings) : rival(program, settings) {}
  TorchRival& torch() { return rival; }
  TorchRival rival;
};

TEST_F(TorchRivalTest, EveryRivalIsFairBesideThePeakOfItsThreads) {
  const TorchProgram torch = program("{}", R"(matmul) echo "{\"gflops\": $((100 * threads))}" ;;)");
  std::vector<std::unique_ptr<Side>> sides;
  for (const bool one_thread : {false, true}) {
    sides.push_back(std::make_unique<Side>(torch, TorchSettings{.one_thread = one_thread}));
  }
  const std::vector<FairProduct> products = fair_products(sides, [](int threads) { return threads == 1 ? 110.0 : 230.0; });
  ASSERT_EQ(products.size(), 2u);
  EXPECT_EQ(products[0].gflops, 200);
  EXPECT_EQ(products[0].peak, 230);
  EXPECT_EQ(products[0].threads, 2);
  Value row = Value::map();
  set_product(row, products[1]);
  EXPECT_EQ(to_json(row), R"({"torch_matmul_gflops":100.0,"fma_peak_gflops":110.0,"fma_peak_threads":1})");

  const std::string message = message_of<InternalError>([&] {
    fair_products(
        sides, [](int) { return 210.0; }, [] {});
  });
  EXPECT_TRUE(message.starts_with("torch's matmul (channels_last, avx2, default malloc, one thread) reaches 100 of 210"))
      << message;
}

TEST_F(TorchRivalTest, MissingTorchIsExplained) {
  const auto start = [&] { TorchRival(program(R"({"missing": "no module"})", ""), {}); };
  EXPECT_EQ(message_of<ConfigError>([&] { or_explain_missing_torch(start); }),
            "torch: /bin/sh cannot import it: no module; "
            "install Debian's python3-torch or name another interpreter with --python");
}

TEST_F(TorchRivalTest, SettingsReachIt) {
  const std::string answer = R"(show) echo "[\"$threads $layout$compiled ${OMP_NUM_THREADS-} ${OMP_WAIT_POLICY-none}\"]" ;;)";
  const TorchProgram torch = program("{}", answer);
  const auto seen = [&](const TorchSettings& settings) {
    return TorchRival(torch, settings).ask("show").as_list().at(0).as_string();
  };
  const testing::VariableScope policy("OMP_WAIT_POLICY", "active");
  EXPECT_EQ(seen({}), "2 --channels-last 2 passive");
  EXPECT_EQ(seen({.channels_last = false, .compiled = true, .passive = false}), "2 --compiled 2 none");
  EXPECT_EQ(seen({.one_thread = true}), "1 --channels-last 1 passive");
}

// Code compiled for one instruction set must not be reused for another, so each set has a separate compiler cache.
TEST_F(TorchRivalTest, EveryInstructionSetHasACompilersCacheOfItsOwn) {
  const TorchProgram torch = program("{}", R"(show) echo "[\"$ATEN_CPU_CAPABILITY $TORCHINDUCTOR_CACHE_DIR\"]" ;;)");
  const auto shown = [&](bool avx512) { return TorchRival(torch, {.avx512 = avx512}).ask("show").as_list()[0].as_string(); };
  EXPECT_EQ(shown(false), "avx2 " + (torch.inputs / "inductor" / "avx2").string());
  EXPECT_EQ(shown(true), "avx512 " + (torch.inputs / "inductor" / "avx512").string());
}

TEST_F(TorchRivalTest, ItsMklUsesEveryProcessor) {
  if (__builtin_cpu_is("intel")) GTEST_SKIP() << "MKL does on an Intel processor";
  const testing::VariableScope given("LD_PRELOAD", "libm.so.6");
  const TorchProgram torch = program("{}", R"(show) echo "[\"$LD_PRELOAD\"]" ;;)");
  const std::string preloaded = TorchRival(torch, {}).ask("show").as_list()[0].as_string();
  ASSERT_TRUE(preloaded.ends_with(":libm.so.6")) << preloaded;
  EXPECT_TRUE(std::filesystem::exists(preloaded.substr(0, preloaded.find(':')))) << preloaded;
}

TEST_F(TorchRivalTest, TheCallersLibraryPathReachesIt) {
  const TorchProgram torch = program("{}", R"(show) echo "[\"${LD_LIBRARY_PATH-none}\"]" ;;)");
  const auto seen = [&] { return TorchRival(torch, {.cuda = true}).ask("show").as_list().at(0).as_string(); };
  const testing::VariableScope given("TESSERA_TORCH_LIBRARY_PATH", "/of/the/caller");
  EXPECT_EQ(seen(), "/of/the/caller");
  const testing::VariableScope empty("TESSERA_TORCH_LIBRARY_PATH", "");
  EXPECT_EQ(seen(), "none");
}

TEST(TorchSettings, AreNamedAndRecorded) {
  EXPECT_EQ(to_string(TorchSettings{}), "channels_last, avx2, default malloc");
  const TorchSettings all{
      .channels_last = false, .avx512 = true, .tuned_malloc = true, .compiled = true, .passive = false, .one_thread = true};
  EXPECT_EQ(to_string(all), "contiguous, avx512, tuned malloc, compiled, default wait, one thread");
  EXPECT_EQ(to_json(to_value(TorchSettings{})),
            str(R"({"channels_last":true,"aten_avx512":false,"tuned_malloc":false,"compiled":false,"wait_policy":"passive",)",
                R"("one_thread":false,"mkl_any_cpu":)", __builtin_cpu_is("intel") ? "false}" : "true}"));
  EXPECT_EQ(to_value(all).at("wait_policy").as_string(), "default");
  EXPECT_TRUE(to_value(all).at("one_thread").as_bool());
}

TEST(ThreadVariants, NeedThreadsThatWait) {
  TorchProgram torch{.python = "python3", .script = "x.py", .inputs = {}, .threads = 2};
  const TorchSettings tuned{.tuned_malloc = true};
  const TorchSettings spinning{.tuned_malloc = true, .passive = false};
  const TorchSettings alone{.tuned_malloc = true, .one_thread = true};
  EXPECT_EQ(thread_variants(torch, tuned, false), (std::vector<TorchSettings>{spinning}));
  EXPECT_EQ(thread_variants(torch, tuned, true), (std::vector<TorchSettings>{spinning, alone}));
  EXPECT_EQ(threads_of(torch, tuned), 2);
  EXPECT_EQ(threads_of(torch, alone), 1);
  torch.threads = 1;
  EXPECT_TRUE(thread_variants(torch, tuned, true).empty());
}

}  // namespace
}  // namespace tessera::bench
