// Times sparse layers against the best dense layer that computes the same function: ours, or oneDNN called directly, Winograd
// included; inference, in which either side keeps what it derives from its weights, and training (forward and both backwards).
// Exit codes: 0 measured, 1 the comparison is void (results differ, rival crippled), 2 bad arguments.
#include <fmt/format.h>

#include "bench/cases/dense_cases.h"
#include "bench/cases/sparse_cases.h"
#include "bench/cases/sparse_network.h"
#include "bench/result_lines.h"
#include "core/cpu/fma_peak.h"
#include "core/support/error.h"
#include "train/run/environment.h"

namespace tessera::bench {
namespace {

struct Options {
  CommonOptions common = {};
  std::string only = {};
};

struct Target {
  SparseCase of;
  double forward, training;  // least ratio on a processor without fast bf16 units; 0 where none is set
  double share;  // of the multiply-add peak, on what is left; 0 where none is set
};

std::vector<Target> targets() {
  const PatternConfig any{.pattern = "unstructured"}, blocks{.pattern = "block"};
  const PatternConfig tiles{.pattern = "tile", .group = 64};
  const auto linear = [](std::int64_t rows, std::int64_t in, std::int64_t out) { return LayerShape(LinearShape{rows, in, out}); };
  const LayerShape square = linear(1024, 1024, 1024);
  const LayerShape conv = ConvShape{8, 128, 128, 28, 3};
  std::vector<Target> all{{{any, .05, square}, 9.5, 0, .45},
                          {{any, .1, square}, 4.8, 0, .45},
                          {{any, .2, square}, 2.5, 0, .45},
                          {{any, .3, square}, 1.65, 0, .45},
                          {{any, .45, square}, 1, 0, 0},
                          {{blocks, .1, square}, 8, 0, .75},
                          {{blocks, .25, square}, 3.7, 0, .75},
                          {{blocks, .5, square}, 1.95, 0, .75},
                          {{any, .1, linear(512, 1024, 1024)}, 0, 3.3, 0},
                          {{tiles, .25, linear(512, 1024, 1024)}, 0, 2.8, 0}};
  for (const auto& [in, out] : {std::pair(768, 768), std::pair(768, 3072), std::pair(3072, 768)}) {
    all.push_back({{tiles, .25, linear(1024, in, out)}, 3.0, 0, .70});
    all.push_back({{tiles, .5, linear(1024, in, out)}, 1.6, 0, .70});
  }
  all.push_back({{any, .1, conv}, 1.8, 1.5, 0});
  all.push_back({{tiles, .25, conv}, 0, 0, .70});
  // The last block of a CIFAR ResNet-8.
  all.push_back({{{.pattern = "tile", .group = 16}, .25, ConvShape{128, 64, 64, 8, 3}}, 0, 0, .70});
  return all;
}

std::string row_of(const SparseCase& of) { return str(name_of(of.pattern), " of ", to_string(of.shape)); }

void print_row(const Value& row, double ratio_target, double share_target) {
  const Value& ratio = row.at("ratio");
  const double median = ratio.at("median").as_double();
  const auto verdict = [](double reached, double target) {
    return target > 0 ? fmt::format(" (target {:.2f}: {})", target, reached >= target ? "met" : "missed") : std::string();
  };
  fmt::print(
      "{:<14} {:<28} density {:.3f} {:<8} {:8.3f} ms, dense {:8.3f} ms {:<30} {:5.2f}x ({:.2f}-{:.2f}){}, {:.2f} of peak{}\n",
      row.at("format").as_string(), row.at("shape").as_string(), row.at("density").as_double(), row.at("phase").as_string(),
      row.at("factored").at("ms").at("median").as_double(), row.at("rival").at("ms").at("median").as_double(),
      row.at("rival").at("name").as_string().substr(0, 30), median, ratio.at("p10").as_double(), ratio.at("p90").as_double(),
      verdict(median, ratio_target), row.at("peak_share").as_double(), verdict(row.at("peak_share").as_double(), share_target));
  std::fflush(stdout);
}

void measure(const Options& options) {
  std::vector<Target> chosen = targets();
  std::erase_if(chosen, [&](const Target& target) { return row_of(target.of).find(options.only) == std::string::npos; });
  const std::vector<SparseNetwork> networks = sparse_networks(options.only);
  TESSERA_CHECK(!chosen.empty() || !networks.empty(), ConfigError, "sparse_bench: --only '", options.only,
                "' is in no row; they read like '", row_of(targets().front().of), "'");
  set_compute_threads(options.common.threads);
  const Value surroundings = describe_surroundings(options.common.threads);
  const double peak = cpu::fma_peak_gflops(static_cast<int>(options.common.threads));
  fmt::print("multiply-add peak {:.0f} GFLOP/s, oneDNN's 1024^3 product {:.0f}\n", peak, guarded_rival_gflops(peak));
  Value::List rows;
  for (const Target& target : chosen) {
    const LayerPair pair = sparse_pair(target.of);
    for (const Phase phase : {Phase::inference, Phase::training}) {
      const bool forward = phase == Phase::inference;
      const double least = forward ? target.forward : target.training;
      const double share = forward ? target.share : 0;
      if (!forward && least == 0 && target.share > 0) continue;
      Value& row = rows.emplace_back(measure_sparse(target.of, pair, phase, {.rounds = options.common.rounds}, peak));
      print_row(row, least, share);
      if (least > 0) row.set("target", least);
      if (share > 0) row.set("share_target", share);
    }
  }
  for (const SparseNetwork& of : networks) rows.push_back(measure_sparse_network(of, options.common.rounds));
  const CommonOptions to = destination(options.common, options.only, TESSERA_BENCH_DIR "/results/sparse_bench.jsonl");
  for (const Value& row : rows) publish(to, surroundings, row);  // all or none: a run that is cut leaves no part of a table
}

int run_program(const std::vector<std::string_view>& words) {
  Options options;
  Arguments arguments("sparse_bench", "times sparse layers against the best dense ones");
  add_common(arguments, options.common);
  arguments.text("--only", options.only, "rows whose pattern and shape contain this; without --results printed only");
  return run_benchmark(arguments, words, [&] { measure(options); });
}

}  // namespace
}  // namespace tessera::bench

int main(int argc, char** argv) { return tessera::bench::run_program({argv + 1, argv + argc}); }
