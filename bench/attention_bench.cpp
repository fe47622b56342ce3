// Times attention, forward and backward of one causal sequence: dense attention as a share of the multiply-add peak, attention
// with sparse patterns against dense attention and, if --python names an interpreter that has torch, dense against PyTorch's.
// Exit codes: 0 measured, 1 the comparison is void (results differ, rival crippled), 2 PyTorch is missing or bad arguments.
#include <fmt/format.h>

#include "bench/cases/attention_cases.h"
#include "bench/cases/dense_cases.h"
#include "bench/result_lines.h"
#include "core/cpu/fma_peak.h"
#include "core/support/error.h"
#include "train/run/environment.h"

namespace tessera::bench {
namespace {

struct Options {
  CommonOptions common = {};
  TorchOptions torch{.python = {}, .script = TESSERA_BENCH_DIR "/attention_bench_torch.py", .sweep_runs = 2};
  std::string only = {};
};

double mebibytes(const Value& bytes) { return static_cast<double>(bytes.as_int()) / (1 << 20); }

void print_ratio(const Value& row, const char* of) { fmt::print("  {} of {}\n", ratio_text(row.at("ratio")), of); }

void print_row(const AttentionCase& of, const Value& row) {
  fmt::print("{}: {:.2f} ms, {:.0f} GF/s, {:.2f} of peak, {:.1f} MiB\n", row_of(of),
             row.at("tessera_ms").at("median").as_double(), row.at("gflops").as_double(), row.at("peak_share").as_double(),
             mebibytes(row.at("memory_bytes")));
  if (const Value* rival = row.find("rival")) {
    print_ratio(row, "the dense time over ours");
    const Value* target = row.find("target");
    const double reached = counted(row.at("ratio"));
    fmt::print("  dense {:.2f} ms, {:.2f} times the pairs, {:.1f} MiB; pattern {:.1f} MiB{}\n",
               rival->at("ms").at("median").as_double(), row.at("pair_ratio").as_double(),
               mebibytes(row.at("dense_memory_bytes")), mebibytes(row.at("pattern_bytes")),
               target == nullptr
                   ? ""
                   : fmt::format("; target {}x: {}", target->as_double(), reached >= target->as_double() ? "met" : "missed"));
  }
  std::fflush(stdout);
}

void measure_torch(const LibraryOptions& torch, const std::vector<AttentionCase>& chosen, Value::List& rows) {
  for (const AttentionCase& of : chosen) {
    if (of.block != 0) continue;
    const Value& row = rows.emplace_back(measure_torch_attention(of, torch));
    fmt::print("{}: {:.2f} ms, PyTorch {} {:.2f} ms, {}\n", row_of(of), row.at("tessera_ms").at("median").as_double(),
               row.at("torch").at("version").as_string(), row.at("torch_ms").at("median").as_double(),
               row.at("torch_settings").at("mode").as_string());
    print_ratio(row, "PyTorch's time over ours");
    std::fflush(stdout);
  }
}

void measure(const Options& options) {
  std::vector<AttentionCase> chosen = attention_cases();
  std::erase_if(chosen, [&](const AttentionCase& of) { return row_of(of).find(options.only) == std::string::npos; });
  TESSERA_CHECK(!chosen.empty(), ConfigError, "attention_bench: --only '", options.only, "' is in no row; they read like '",
                row_of(attention_cases().front()), "'");
  const LibraryOptions torch{options.torch, static_cast<int>(options.common.threads), options.common.rounds};
  if (!options.torch.python.empty()) or_explain_missing_torch([&] { check_torch_attention(torch); });
  set_compute_threads(options.common.threads);
  const Value surroundings = describe_surroundings(options.common.threads);
  const double peak = cpu::fma_peak_gflops(static_cast<int>(options.common.threads));
  fmt::print("multiply-add peak {:.0f} GFLOP/s, oneDNN's 1024^3 product {:.0f}\n", peak, guarded_rival_gflops(peak));
  const TurnOptions turns{.rounds = options.common.rounds};
  Value::List rows;
  for (const AttentionCase& of : chosen) {
    print_row(of,
              rows.emplace_back(of.block == 0 ? measure_attention(of, turns, peak) : measure_sparse_attention(of, turns, peak)));
  }
  if (options.torch.python.empty()) {
    fmt::print("PyTorch's rows are left out, because --python names no interpreter\n");
  } else {
    measure_torch(torch, chosen, rows);
  }
  const CommonOptions to = destination(options.common, options.only, TESSERA_BENCH_DIR "/results/attention_bench.jsonl");
  for (const Value& row : rows) publish(to, surroundings, row);  // all or none: an interrupted run leaves no partial table
}

int run_program(const std::vector<std::string_view>& words) {
  Options options;
  Arguments arguments("attention_bench", "times attention alone, with sparse patterns, and against PyTorch's");
  add_common(arguments, options.common);
  add_torch(arguments, options.torch);
  arguments.text("--only", options.only, "rows whose pattern and shape contain this; without --results printed only");
  return run_benchmark(arguments, words, [&] { measure(options); });
}

}  // namespace
}  // namespace tessera::bench

int main(int argc, char** argv) { return tessera::bench::run_program({argv + 1, argv + argc}); }
