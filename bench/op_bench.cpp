// Times our ops: matrix products and convolutions against the best direct oneDNN call sequence from and to the same tensors, the
// others against streaming bandwidth. If --python names an interpreter that has torch, matrix products are also timed against
// PyTorch's. Prints a table. At its end it appends one line per op, shape, pass and rival.
// Exit codes: 0 measured, 1 the comparison is void (results differ, rival crippled), 2 PyTorch is missing or bad arguments.
#include <fmt/format.h>

#include "bench/cases/product_torch.h"
#include "bench/op_options.h"
#include "bench/result_lines.h"
#include "core/cpu/fma_peak.h"
#include "core/support/error.h"
#include "train/run/environment.h"

namespace tessera::bench {
namespace {

constexpr double kTarget = 0.95;  // least ratio of oneDNN's time to ours, over all shapes and passes

struct Least {
  double ratio = 1e30;
  std::string where;

  void meet(const Value& row) {
    const double reached = counted(row.at("ratio"));
    if (reached >= ratio) return;
    ratio = reached;
    where = str(row.at("op").as_string(), ' ', row.at("shape").as_string(), ' ', row.at("pass").as_string());
  }
};

void print_dense(const Value& row) {
  const Value& ratio = row.at("ratio");
  fmt::print(
      "{:<7} {:<41} {:<15} {:8.3f} ms {:5.0f} GF/s ({:4.0f} % of peak)  {:5.2f} ({:.2f}-{:.2f}) x {:<34} blocked {:5.2f}"
      "  [{}]\n",
      row.at("op").as_string(), row.at("shape").as_string(), row.at("pass").as_string(),
      row.at("tessera_ms").at("median").as_double(), row.at("gflops").as_double(), 100 * row.at("peak_share").as_double(),
      ratio.at("median").as_double(), ratio.at("p10").as_double(), ratio.at("p90").as_double(),
      row.at("rival").at("name").as_string(), row.at("blocked_ratio").at("median").as_double(), row.at("algorithm").as_string());
  std::fflush(stdout);
}

void print_memory(const Value& row) {
  const Value& ratio = row.at("ratio");
  fmt::print("{:<16} {:<9} {:<16} {:8.2f} ms {:6.1f} GB/s  {:4.2f} ({:.2f}-{:.2f}) of streaming, {:4.2f} of the same traffic\n",
             row.at("op").as_string(), row.at("pass").as_string(), row.at("shape").as_string(),
             row.at("tessera_ms").at("median").as_double(), row.at("gbytes_per_second").as_double(),
             ratio.at("median").as_double(), ratio.at("p10").as_double(), ratio.at("p90").as_double(),
             row.at("share_of_same_traffic").at("median").as_double());
  std::fflush(stdout);
}

void measure_torch(const LibraryOptions& torch, const std::vector<ProductShape>& products, Value::List& rows) {
  for (const ProductShape& shape : products) {
    const Value& row = rows.emplace_back(measure_torch_product(shape, torch));
    fmt::print("matmul  {:<41} {:8.3f} ms, PyTorch {} {:8.3f} ms, {}: {}\n", row.at("shape").as_string(),
               row.at("tessera_ms").at("median").as_double(), row.at("torch").at("version").as_string(),
               row.at("torch_ms").at("median").as_double(), row.at("torch_settings").at("mode").as_string(),
               ratio_text(row.at("ratio")));
    std::fflush(stdout);
  }
}

void measure(const OpOptions& options) {
  const OpCases cases = chosen_cases(options);
  const LibraryOptions torch{options.torch, static_cast<int>(options.common.threads), options.common.rounds};
  const bool against_torch = !options.torch.python.empty() && !cases.products.empty();
  if (against_torch) or_explain_missing_torch([&] { check_torch_product(torch); });
  set_compute_threads(options.common.threads);
  const Value surroundings = describe_surroundings(options.common.threads);
  const TurnOptions turns{.rounds = options.common.rounds};
  const auto measure_peak = [&] { return cpu::fma_peak_gflops(static_cast<int>(options.common.threads)); };
  const double peak = measure_peak();
  fmt::print("multiply-add peak {:.0f} GFLOP/s, oneDNN's 1024^3 product {:.0f}\n", peak, guarded_rival_gflops(peak));

  Value::List rows;
  Least least;
  for (const auto& make : cases.dense) {
    const Value& row = rows.emplace_back(measure_dense(make(), turns, measure_peak));
    least.meet(row);
    print_dense(row);
  }
  if (!least.where.empty()) {
    fmt::print("least ratio to oneDNN: {:.3f} ({}); target {}: {}\n", least.ratio, least.where, kTarget,
               least.ratio >= kTarget ? "met" : "missed");
  }
  for (const MemoryMaker& maker : cases.memory) {
    print_memory(rows.emplace_back(measure_memory(maker.make(), options.megabytes, turns)));
  }
  if (against_torch) {
    measure_torch(torch, cases.products, rows);
  } else if (!cases.products.empty()) {
    fmt::print("PyTorch's rows are left out, because --python names no interpreter\n");
  }
  const CommonOptions to = destination(options.common, options.only, TESSERA_BENCH_DIR "/results/op_bench.jsonl");
  for (const Value& row : rows) publish(to, surroundings, row);  // at the end: an interrupted run leaves no partial table
}

int run_program(const std::vector<std::string_view>& words) {
  OpOptions options;
  options.torch.script = TESSERA_BENCH_DIR "/op_bench_torch.py";
  Arguments arguments("op_bench", "times ops against oneDNN called directly, PyTorch and streaming bandwidth");
  add_common(arguments, options.common);
  add_torch(arguments, options.torch);
  arguments.count("--megabytes", options.megabytes, "size of an operand of memory-bound ops, MiB; larger than the last cache")
      .text("--only", options.only, "op and shape to measure, or a part of them; without --results printed only");
  return run_benchmark(arguments, words, [&] { measure(options); });
}

}  // namespace
}  // namespace tessera::bench

int main(int argc, char** argv) { return tessera::bench::run_program({argv + 1, argv + argc}); }
