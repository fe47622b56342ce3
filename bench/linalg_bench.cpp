// Times core/linalg. Contractions run against copies to matrices and one GEMM of the same library. The copies are compared with
// the streaming bandwidth and must come near it. Randomised SVD runs against scikit-learn's and must meet its error.
// Exit codes: 0 measured, 1 the comparison is void (results differ, errors too large, rival crippled), 2 scikit-learn is missing
// or bad arguments.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "bench/cases/contract_cases.h"
#include "bench/cases/svd_cases.h"
#include "bench/result_lines.h"
#include "core/support/error.h"
#include "train/run/environment.h"

namespace tessera::bench {
namespace {

constexpr Target kContractTarget{"geometric_mean", 1.2};
constexpr std::int64_t kRank = 15;
constexpr std::int64_t kLargestContraction = 256, kLargestSvd = 4096;

constexpr std::int64_t kEverySize = 65536;
constexpr std::int64_t kStreamMegabytes = 256;  // of each array of the bandwidth measurement

struct Options {
  CommonOptions common;
  std::string python = "/usr/bin/python3";
  std::string only = "all";
  std::int64_t largest = kEverySize;
};

void print_row(const std::string& name, const Value& row, const char* ours) {
  fmt::print("{:<40} {:9.4f} ms, rival {:9.4f} ms: {}\n", name, row.at(ours).at("ms").at("median").as_double(),
             row.at("rival").at("ms").at("median").as_double(), ratio_text(row.at("ratio")));
  std::fflush(stdout);
}

// Times the rival's permuting copies of tensors larger than any cache. Gives the share of the streaming bandwidth for each order.
// Empty in a run of small sizes.
std::map<std::string, double> measure_permutes(const Options& options, Value::List& rows) {
  std::map<std::string, double> shares;
  if (options.largest < kPermuteSize) return shares;
  for (const std::string& order : copied_orders()) {
    const Value& row =
        rows.emplace_back(measure_permute(order, kPermuteSize, kStreamMegabytes, {.rounds = options.common.rounds}));
    const double share = shares[order] = counted(row.at("ratio"));
    fmt::print("the rival's permute {} of {}: {:.1f} GB/s, {:.2f} of streaming; needs {}: {}\n", order,
               row.at("shape").as_string(), row.at("gbytes_per_second").as_double(), share, kPermuteShare,
               share >= kPermuteShare ? "met" : "missed");
    std::fflush(stdout);
  }
  return shares;
}

// The least share among the copies that the rival makes. Infinite if it makes none.
double least_share(const Value& row, const std::map<std::string, double>& shares) {
  double least = INFINITY;
  for (const Value& order : row.at("permutes").as_list()) least = std::min(least, shares.at(order.as_string()));
  return least;
}

Value::List measure_contractions(const Options& options) {
  Value::List rows;
  const std::map<std::string, double> shares = measure_permutes(options, rows);
  if (options.only == "permute") return rows;
  Ratios fair{"contract"};
  int unfair = 0;
  for (const ContractCase& of : contract_cases()) {
    for (std::int64_t size = 8; size <= std::min(kLargestContraction, options.largest); size *= 2) {
      Value& row = rows.emplace_back(measure_contract(of, size, {.rounds = options.common.rounds}));
      const double share = shares.empty() ? INFINITY : least_share(row, shares);
      if (share < INFINITY) row.set("permute_share", share);
      if (share >= kPermuteShare)
        fair.add(row);
      else
        ++unfair;
      print_row(fmt::format("contract {} {} {}", of.equation, of.kind, size), row, "contract");
    }
  }
  if (unfair > 0) fmt::print("{} rows do not count: the rival's copies fall short of {} of streaming\n", unfair, kPermuteShare);
  TESSERA_CHECK(!fair.values.empty(), NumericError, "linalg_bench: the rival of contract copies too slowly in every row");
  print_verdict(verdict_of(fair, std::span(&kContractTarget, 1)));
  return rows;
}

Value::List measure_svds(const Options& options) {
  Value::List rows;
  Ratios all{"randomised_svd"};
  const SklearnProgram program{options.python, TESSERA_BENCH_DIR "/linalg_bench_sklearn.py",
                               static_cast<int>(options.common.threads)};
  for (const char* const spectrum : {"flat", "power"}) {
    for (std::int64_t size = 512; size <= std::min(kLargestSvd, options.largest); size *= 2) {
      const Value& row = rows.emplace_back(measure_svd({size, kRank, spectrum}, program, options.common.rounds));
      all.add(row);
      print_row(fmt::format("randomised_svd {}^2 rank {} {}", size, kRank, spectrum), row, "tessera");
      fmt::print("  error {:.6f}, rival's {:.6f}; with our iterations {:.6f}, {:.2f}x\n",
                 row.at("tessera").at("error").as_double(), row.at("rival").at("error").as_double(),
                 row.at("equal_work").at("error").as_double(), row.at("equal_work_ratio").at("median").as_double());
    }
  }
  if (rows.empty()) return rows;  // all sizes are larger than the limit
  print_verdict(verdict_of(all, {}));
  return rows;
}

void measure(const Options& options) {
  const bool everything = options.only == "all";
  constexpr std::string_view kParts[]{"all", "contract", "permute", "randomised_svd"};
  TESSERA_CHECK(std::ranges::find(kParts, options.only) != std::end(kParts), ConfigError, "linalg_bench: --only is '",
                options.only, "'; needs contract, permute, randomised_svd or all");
  set_compute_threads(options.common.threads);
  const Value surroundings = describe_surroundings(options.common.threads);
  Value::List rows;
  if (options.only != "randomised_svd") rows = measure_contractions(options);
  if (everything || options.only == "randomised_svd") {
    for (Value& row : measure_svds(options)) rows.push_back(std::move(row));
  }
  const bool whole = everything && options.largest == kEverySize;
  const CommonOptions to = destination(options.common, whole ? "" : "a part", TESSERA_BENCH_DIR "/results/linalg_bench.jsonl");
  for (const Value& row : rows) publish(to, surroundings, row);  // all or none: an interrupted run leaves no partial table
}

int run_program(const std::vector<std::string_view>& words) {
  Options options;
  Arguments arguments("linalg_bench", "times contractions and randomised SVD against what they replace");
  add_common(arguments, options.common);
  arguments.text("--only", options.only, "contract, permute, randomised_svd or all; a part without --results is printed only")
      .count("--largest", options.largest, "no larger sizes than this")
      .text("--python", options.python, "interpreter that has scikit-learn (/usr/bin/python3)");
  return run_benchmark(arguments, words, [&] { measure(options); });
}

}  // namespace
}  // namespace tessera::bench

int main(int argc, char** argv) { return tessera::bench::run_program({argv + 1, argv + argc}); }
