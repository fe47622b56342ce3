// Times sparse layers against the best dense layer that computes the same function: ours, or oneDNN called directly, Winograd
// included. Covers inference, in which both sides keep what they derive from their weights, and training (forward and backwards
// together, and each of these passes alone). Then times the product with an unstructured matrix against PyTorch's CSR product.
// With --isa avx2 all sides are limited to AVX2, and a few rows show the gain on a processor without AVX-512.
// Exit codes: 0 measured, 1 the comparison is void (results differ, rival crippled), 2 PyTorch is missing or bad arguments.
#include <fmt/format.h>

#include <cstdlib>

#include "bench/cases/dense_cases.h"
#include "bench/cases/sparse_cases.h"
#include "bench/cases/sparse_network.h"
#include "bench/cases/sparse_torch.h"
#include "bench/result_lines.h"
#include "core/cpu/fma_peak.h"
#include "core/io/safetensors.h"
#include "core/io/vfs.h"
#include "core/support/error.h"
#include "train/run/environment.h"

namespace tessera::bench {
namespace {

struct Options {
  CommonOptions common = {};
  TorchOptions torch{.script = TESSERA_BENCH_DIR "/sparse_bench_torch.py", .sweep_runs = 3};
  std::string weights = {}, weight = {};
  std::string isa = {};
  std::string only = {};
};

// " (target 0.45: met)", or nothing if no target is set.
std::string verdict(double reached, const Value* target) {
  if (target == nullptr) return "";
  return fmt::format(" (target {:.2f}: {})", target->as_double(), reached >= target->as_double() ? "met" : "missed");
}

std::string share_of(const Value& timed) {
  const double share = timed.at("peak_share").as_double();
  return fmt::format("{:.2f} of peak{}", share, verdict(share, timed.find("share_target")));
}

std::string case_of(const Value& row) {
  return fmt::format("{:<26} {:<24} density {:.3f} {} {:<8}", row.at("format").as_string(), row.at("shape").as_string(),
                     row.at("density").as_double(), row.at("precision").as_string(), row.at("phase").as_string());
}

std::string ratio_of(const Value& row) {
  const Value& ratio = row.at("ratio");
  return ratio_text(ratio) + verdict(counted(ratio), row.find("target"));
}

void print_row(const Value& row) {
  fmt::print("{} {:8.3f} ms, dense {:8.3f} ms {:<30} {}, {}\n", case_of(row),
             row.at("factored").at("ms").at("median").as_double(), row.at("rival").at("ms").at("median").as_double(),
             row.at("rival").at("name").as_string().substr(0, 30), ratio_of(row), share_of(row));
  if (const Value* floor = row.find("library_floor")) {
    fmt::print("  {:8.3f} ms {}\n", floor->at("ms").at("median").as_double(), floor->at("name").as_string());
  }
  for (const Value& pass : row.at("parts").as_list()) {
    fmt::print("  {:<18} {:8.3f} ms {}\n", pass.at("name").as_string(), pass.at("ms").at("median").as_double(), share_of(pass));
  }
  std::fflush(stdout);
}

void measure_dense(const Options& options, const std::vector<SparseTarget>& chosen, Value::List& rows) {
  if (chosen.empty()) return;
  const double peak = cpu::isa_peak_gflops(cpu::isa(), static_cast<int>(options.common.threads));
  fmt::print("multiply-add peak {:.0f} GFLOP/s, oneDNN's 1024^3 product {:.0f}\n", peak, guarded_rival_gflops(peak));
  for (const SparseTarget& target : chosen) {
    const LayerPair pair = sparse_pair(target.of);
    for (const Phase phase : {Phase::inference, Phase::training}) {
      if (phase == Phase::training && !target.trains()) continue;
      Value& row = rows.emplace_back(measure_sparse(target, pair, phase, {.rounds = options.common.rounds}, peak));
      if (!options.isa.empty()) row.set("held_to", options.isa);
      print_row(row);
    }
  }
}

void measure_torch(const LibraryOptions& options, const std::vector<SparseTorchTarget>& chosen, Value::List& rows) {
  for (const SparseTorchTarget& target : chosen) {
    const Value& row = rows.emplace_back(measure_against_torch(target, options));
    fmt::print("{} {:8.3f} ms, PyTorch {} {:8.3f} ms {:<14} {}; its dense product {:.2f}x\n", case_of(row),
               row.at("tessera_ms").at("median").as_double(), row.at("torch").at("version").as_string(),
               row.at("torch_ms").at("median").as_double(), row.at("torch_settings").at("mode").as_string(), ratio_of(row),
               row.at("aside_ratio").at("median").as_double());
    std::fflush(stdout);
  }
}

struct Rows {
  std::vector<SparseTarget> dense;
  std::vector<SparseTorchTarget> torch;
  std::vector<SparseNetwork> networks;
};

Tensor weight_of(const Options& options) {
  SafetensorsFile file = decode_safetensors(real_vfs().read_file(options.weights), options.weights);
  const auto found = file.tensors.find(options.weight);
  TESSERA_CHECK(found != file.tensors.end(), ConfigError, "sparse_bench: --weight '", options.weight, "' is not in ",
                options.weights);
  return found->second;
}

Rows chosen_rows(const Options& options) {
  Rows rows = options.isa.empty() ? Rows{sparse_targets(), sparse_torch_targets(), sparse_networks(options.only)}
                                  : Rows{avx2_targets(), {}, {}};
  TESSERA_CHECK(options.weights.empty() == options.weight.empty(), ConfigError,
                "sparse_bench: --weights names a file and --weight a tensor in it: they go together");
  if (!options.weights.empty()) take_weight(rows.dense, weight_of(options));
  const auto left_out = [&](const std::string& row) { return row.find(options.only) == std::string::npos; };
  std::erase_if(rows.dense, [&](const SparseTarget& target) { return left_out(row_of(target.of)); });
  std::erase_if(rows.torch, [&](const SparseTorchTarget& target) { return left_out(target.row()); });
  TESSERA_CHECK(!rows.dense.empty() || !rows.torch.empty() || !rows.networks.empty(), ConfigError, "sparse_bench: --only '",
                options.only, "' is in no row; they read like '", row_of(sparse_targets().front().of), "' and '",
                sparse_torch_targets().front().row(), "'");
  return rows;
}

// Must run before either side first asks for the instruction set. The rival is limited like our side.
void hold_back(const std::string& isa) {
  if (isa.empty()) return;
  TESSERA_CHECK(isa == "avx2", ConfigError, "sparse_bench: --isa is '", isa,
                "'; it is avx2, or left out for all that the processor has");
  setenv("TESSERA_ISA", "avx2", 1);
  setenv("ONEDNN_MAX_CPU_ISA", "AVX2", 1);
}

void measure(const Options& options) {
  hold_back(options.isa);
  const Rows chosen = chosen_rows(options);
  const LibraryOptions torch{options.torch, static_cast<int>(options.common.threads), options.common.rounds};
  if (!chosen.torch.empty()) or_explain_missing_torch([&] { check_torch(torch); });  // before the other rows take minutes
  set_compute_threads(options.common.threads);
  const Value surroundings = describe_surroundings(options.common.threads);
  Value::List rows;
  measure_dense(options, chosen.dense, rows);
  measure_torch(torch, chosen.torch, rows);
  for (const SparseNetwork& of : chosen.networks) rows.push_back(measure_sparse_network(of, options.common.rounds));
  const CommonOptions to = destination(options.common, options.only, TESSERA_BENCH_DIR "/results/sparse_bench.jsonl");
  for (const Value& row : rows) publish(to, surroundings, row);  // all or none: an interrupted run leaves no partial table
}

int run_program(const std::vector<std::string_view>& words) {
  Options options;
  Arguments arguments("sparse_bench", "times sparse layers against the best dense ones and PyTorch's CSR matrices");
  add_common(arguments, options.common);
  add_torch(arguments, options.torch);
  arguments.text("--weights", options.weights, "safetensors file of a trained network, for the rows of one, which are else drawn")
      .text("--weight", options.weight, "the tensor in it: a linear layer's")
      .text("--isa", options.isa, "avx2 holds all sides back to AVX2, for a few rows")
      .text("--only", options.only, "rows whose pattern, shape and rival contain this; without --results printed only");
  return run_benchmark(arguments, words, [&] { measure(options); });
}

}  // namespace
}  // namespace tessera::bench

int main(int argc, char** argv) { return tessera::bench::run_program({argv + 1, argv + argc}); }
