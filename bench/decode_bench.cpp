// Times one-token forwards of GPT-2's smallest network after a prompt, as in generation, against PyTorch in the same run. Both
// have the same weights and tokens. The scores are compared first, then the sides take turns. The rival has a static cache and
// its fastest settings: eager or compiled, malloc, ATen's instruction set, what waiting threads do. A sweep chooses up to three
// within 1.5 times its best, and they take part in every round. So do a pass that only reads as many bytes as the weights have
// and, in bf16, our forward in f32. Then the network with compressed MLPs is timed against our dense one.
// Exit codes: 0 measured, whatever is reached, 1 the comparison is void (scores differ, rival crippled), 2 PyTorch is missing or
// bad arguments.
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <optional>

#include "bench/cases/compressed_gpt.h"
#include "bench/decode_workload.h"
#include "bench/named_workloads.h"
#include "bench/result_lines.h"
#include "bench/rivals/modes_rival.h"
#include "bench/stream.h"
#include "core/cpu/fma_peak.h"
#include "core/device/constant_weights.h"
#include "core/device/decisions.h"
#include "core/io/scratch_folder.h"
#include "core/support/error.h"
#include "train/run/decisions_file.h"
#include "train/run/environment.h"

namespace tessera::bench {
namespace {

// Both sides round every activation to bf16, but in different places.
constexpr double kBf16Tolerance = 3e-2;

// The least ratio to torch, the least share of a read-only stream's speed, and the least ratio to our f32. 0 means no target.
struct Targets {
  double ratio, stream, f32;
};
Targets targets_of(const std::string& precision) { return precision == "f32" ? Targets{1.05, 0.9, 0} : Targets{0, 0, 1.8}; }

struct Options {
  CommonOptions common{.rounds = 15, .results = TESSERA_BENCH_DIR "/results/decode_bench.jsonl"};
  TorchOptions torch{.script = TESSERA_BENCH_DIR "/decode_bench_torch.py"};
  std::string ways = {};
  std::string only = {};
};

const std::vector<std::string> kRows{"f32", "bf16", "svd", "tile"};

std::vector<std::string> chosen_rows(const Options& options) {
  std::vector<std::string> rows = kRows;
  if (!options.only.empty()) std::erase_if(rows, [&](const std::string& row) { return row != options.only; });
  TESSERA_CHECK(!rows.empty(), ConfigError, "decode_bench: --only is '", options.only, "'; needs f32, bf16, svd or tile");
  return rows;
}

// Our sides, which are timed in turn with torch.
struct OurSides {
  DecodeWorkload ours;
  std::optional<DecodeWorkload> in_f32;  // only if the precision is bf16
  StreamSide stream;

  explicit OurSides(const std::string& precision) : ours(gpt2_small(), precision), stream(read_side(ours.weight_bytes())) {
    if (precision != "f32") in_f32.emplace(gpt2_small(), "f32");
  }
  std::vector<SelfTimed> timed() {
    std::vector<SelfTimed> sides{[this](std::int64_t count) { return ours.run(count); }, self_timed(stream.contestant)};
    if (in_f32) sides.emplace_back([this](std::int64_t count) { return in_f32->run(count); });
    return sides;
  }
};

void report_share(Value& row, const std::string& name, const Samples& theirs, const Samples& ours, double target) {
  print_summary("  " + name, summarise(ratios(theirs, ours)), " x ");
  const Value ratio = ratio_value(theirs, ours);
  row.set(name + "_ratio", ratio);
  if (target == 0) return;
  row.set(name + "_target", target);
  fmt::print("  {}: {:.3f}x, target {}: {}\n", name, counted(ratio), target, counted(ratio) >= target ? "met" : "missed");
}

void report_ours(Value& row, const OurSides& sides, const std::vector<Samples>& samples, const Targets& targets) {
  const double ms = samples[0].median();
  row.set("tokens_per_second", 1e3 / ms);
  row.set("weight_bytes", sides.ours.weight_bytes());
  row.set("stream_ms", to_value(samples[1]));
  row.set("stream_gbytes_per_second", quantile(rates(sides.stream.bytes, samples[1]), 0.5));
  report_share(row, "stream", samples[1], samples[0], targets.stream);
  if (sides.in_f32) {
    row.set("f32_ms", to_value(samples[2]));
    report_share(row, "f32", samples[2], samples[0], targets.f32);
  }
  if (targets.ratio > 0) row.set("target", targets.ratio);
}

Value describe_run(const Options& options, const std::string& precision) {
  Value row = Value::map();
  row.set("model", "gpt2");
  row.set("batch", 1);
  row.set("shape", str(DecodeWorkload::kPrompt, " tokens in the cache"));
  row.set("precision", precision);
  row.set("rounds", options.common.rounds);
  row.set("sweep_runs", options.torch.sweep_runs);
  return row;
}

ModeSweepOptions sweep_options(const Options& options, const std::string& precision) {
  return {.least_runs = options.torch.sweep_runs,
          .settings = first_settings(false),
          .tuned_malloc = true,
          .tolerance = precision == "f32" ? kValueTolerance : kBf16Tolerance,
          .only = options.ways};
}

Value measure_against_torch(const Options& options, const std::string& precision) {
  fmt::print("gpt2, {}\n", precision);
  const DecisionScope decisions({.measure = true});
  const ConstantWeights constant;
  const ScratchFolder folder("tessera_bench");
  OurSides sides(precision);
  sides.ours.write_inputs(folder.path());
  const std::vector<float> scores = sides.ours.scores();

  const TorchProgram program{options.torch.python,
                             options.torch.script,
                             folder.path(),
                             static_cast<int>(options.common.threads),
                             {"--precision", precision}};
  const ModeSweepOptions how = sweep_options(options, precision);
  const TorchSweep<ModeWay> swept = sweep_ways(program, how, scores);
  std::vector<std::unique_ptr<ModesRival>> rivals;
  for (const ModeWay& way : swept.finalists) rivals.push_back(std::make_unique<ModesRival>(program, way, scores, how.tolerance));
  const std::vector<FairProduct> products = fair_products(rivals, cpu::fma_peak_gflops);
  std::vector<SelfTimed> timed = sides.timed();
  const auto own = static_cast<std::ptrdiff_t>(timed.size());
  for (const auto& rival : rivals) timed.emplace_back([&rival](std::int64_t count) { return rival->run(count); });
  const std::vector<Samples> samples = time_in_turns(timed, options.common.rounds, calls_per_turn(timed));

  Value row = describe_run(options, precision);
  const FinalistTimes times(samples[0], {samples.begin() + own, samples.end()});
  report_times(row, times, swept.finalists);
  report_ours(row, sides, samples, targets_of(precision));
  row.set("score_difference", rivals[times.best]->value_difference());
  row.set("torch", rivals[times.best]->torch().environment());
  row.set("tessera_decisions", tessera::to_value(decisions.taken()).at("decisions"));
  row.set("torch_sweep", swept.rows);
  set_product(row, products[times.best]);
  return row;
}

bool is_compressed(const std::string& row) { return row == "svd" || row == "tile"; }

void measure(const Options& options, const Arguments& arguments) {
  constexpr std::string_view kTorch[]{"--ways", "--sweep-runs", "--python", "--script"};
  const std::vector<std::string> rows = chosen_rows(options);
  if (std::ranges::all_of(rows, is_compressed))
    arguments.refuse(kTorch, str("on --only ", options.only, ", which is without torch"));
  set_compute_threads(options.common.threads);
  const Value surroundings = describe_surroundings(options.common.threads);
  for (const std::string& row : rows) {
    publish(options.common, surroundings,
            is_compressed(row) ? measure_compressed_decoding("gpt2", gpt2_small(), {row, options.common.rounds})
                               : measure_against_torch(options, row));
  }
}

int run_program(const std::vector<std::string_view>& words) {
  Options options;
  Arguments arguments("decode_bench", "times one-token forwards of GPT-2's smallest network against PyTorch's");
  add_common(arguments, options.common);
  arguments.text("--only", options.only, "f32, bf16, or of compressed MLPs svd or tile; all without it")
      .text("--ways", options.ways, "sweep only torch's ways whose text has this, such as 'eager, contiguous, avx512'");
  add_torch(arguments, options.torch);
  return run_benchmark(arguments, words, [&] { or_explain_missing_torch([&] { measure(options, arguments); }); });
}

}  // namespace
}  // namespace tessera::bench

int main(int argc, char** argv) { return tessera::bench::run_program({argv + 1, argv + argc}); }
