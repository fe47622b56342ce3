// Times our ops on a GPU: products and convolutions against the best of cuBLASLt and cuDNN called directly, products with a
// sparse weight against cuSPARSE, TDC's core convolutions against cuDNN, Tucker-2 layers around them against three convolutions,
// ResNet-18 in TDC's ranks against the dense network, the rest against the bandwidth of a copy. Sides take turns in one process,
// work is recorded as graphs, sets of tensors rotate so that no cache holds them. Prints a table and which targets are reached;
// appends one line per op, shape and pass as it goes, then one per op and target. Exit codes: 0 measured, whatever is reached, 1
// the comparison is void, 2 bad arguments or no GPU.
#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <span>

#include "bench/cases/cuda_cases.h"
#include "bench/cases/cuda_core.h"
#include "bench/cases/cuda_network.h"
#include "bench/cases/cuda_sparse.h"
#include "bench/cases/cuda_tucker.h"
#include "bench/cases/memory_cases.h"
#include "bench/result_lines.h"
#include "bench/rivals/cusparse_rival.h"
#include "core/device/constant_weights.h"
#include "core/device/decisions.h"
#include "core/device/device_info.h"
#include "core/support/error.h"

namespace tessera::bench {
namespace {

constexpr Target kDenseTargets[]{{"least", 0.97}};  // the library's time over ours
constexpr Target kCoreTargets[]{{"geometric_mean", 1.5}, {"least", 1.0}};  // cuDNN's time over the op's: no shape may be slower
constexpr Target kMemoryTargets[]{{"least", 0.85}};  // share of the copy's bandwidth
constexpr Target kNetworkTargets[]{{"least", 1.3}};  // the dense network's time over the factored one's

struct Options {
  CommonOptions common{.rounds = 15, .results = TESSERA_BENCH_DIR "/results/cuda_op_bench.jsonl"};
  std::string part;
  std::string only;
  std::string precision;  // of the parts dense and sparse; empty means all
  std::int64_t megabytes = 1024;

  bool wants(const std::string& op, const std::string& shape) const {
    return str(op, ' ', shape).find(only) != std::string::npos;
  }
  bool wants_precision(std::string_view name) const { return precision.empty() || precision == name; }
};

// Where result lines go, and the surroundings that each of them states.
struct Output {
  CommonOptions options;
  Value surroundings;

  void line(const Value& row) const { publish(options, surroundings, row); }
};

Value surroundings_of(const Options& options, Device device) {
  Value shared = describe_surroundings(options.common.threads, device);
  const DeviceInfo info = device_info(device);
  shared.set("gpu", info.name);
  shared.set("driver", info.driver);
  shared.set("libraries", str(info.libraries, ", ", cusparse_version()));
  shared.set("part", options.part);
  return shared;
}

void print_rotated(const Value& row) {
  fmt::print("{:<11} {:<38} {:<15} {:<4} {:9.4f} ms ({:.4f}-{:.4f}) {:8.0f} GF/s  ", row.at("op").as_string(),
             row.at("shape").as_string(), row.at("pass").as_string(), row.at("precision").as_string(),
             row.at("tessera_ms").at("median").as_double(), row.at("tessera_ms").at("p10").as_double(),
             row.at("tessera_ms").at("p90").as_double(), row.at("gflops").as_double());
  if (const Value* ratio = row.find("ratio")) {
    fmt::print("{:5.2f} ({:.2f}-{:.2f}) x {}\n", ratio->at("median").as_double(), ratio->at("p10").as_double(),
               ratio->at("p90").as_double(), row.at("rival").at("name").as_string());
  } else {
    fmt::print("no rival\n");
  }
  for (const Value& way : row.at("ways").as_list()) {
    fmt::print("{:>11} {}: {:.4f} ms, {:.2f} of the first's time\n", "", way.at("name").as_string(),
               way.at("ms").at("median").as_double(), way.at("ratio").at("median").as_double());
  }
  if (const Value* dense = row.find("dense")) {
    fmt::print("{:>11} dense product, {}: {:.4f} ms, {:.2f} of ours\n", "", dense->at("name").as_string(),
               dense->at("ms").at("median").as_double(), row.at("dense_ratio").at("median").as_double());
  }
  std::fflush(stdout);
}

// Measures the rows of a part. A row that cannot be measured does not stop the rows after it.
class Rows {
 public:
  Rows(const Options& options, const Output& output) : options_(options), output_(output) {}

  // `measure` gives the row; its line is appended at once.
  template <class Measure>
  void row(const std::string& op, const std::string& shape, const Measure& measure) {
    if (!options_.wants(op, shape)) return;
    Ratios& ratios = ratios_of(op);
    try {
      const Value row = measure();
      output_.line(row);
      if (row.find("ratio") != nullptr) ratios.add(row);
    } catch (const Error& error) {
      ++ratios.failed;
      fmt::print("{} {} failed: {}\n", op, shape, error.what());
      std::fflush(stdout);
    }
  }

  // Prints a verdict on each target, or a summary if there are no targets, and appends them as lines.
  void judge(const Ratios& ratios, std::span<const Target> targets) const {
    if (ratios.values.empty() && ratios.failed == 0) return;
    if (targets.empty()) output_.line(summary_row(ratios));
    for (const Target& target : targets) output_.line(verdict_row(ratios, target));
    print_verdict(verdict_of(ratios, targets));
  }

  // Gives verdicts on each op and, if there are several, on all of them together. Throws if rows failed.
  void conclude(std::span<const Target> targets) const {
    TESSERA_CHECK(!ops_.empty(), ConfigError, "cuda_op_bench: --only '", options_.only, "' is in no op and shape of part ",
                  options_.part, options_.precision.empty() ? "" : " in ", options_.precision);
    Ratios all{"every op"};
    for (const Ratios& ratios : ops_) {
      judge(ratios, targets);
      all.values.insert(all.values.end(), ratios.values.begin(), ratios.values.end());
      all.failed += ratios.failed;
    }
    if (ops_.size() > 1) judge(all, targets);
    TESSERA_CHECK(all.failed == 0, InternalError, all.failed, " of ", all.failed + std::ssize(all.values), " rows failed");
  }

 private:
  Ratios& ratios_of(const std::string& op) {
    const auto found = std::ranges::find(ops_, op, &Ratios::op);
    return found != ops_.end() ? *found : ops_.emplace_back(Ratios{op});
  }
  const Options& options_;
  const Output& output_;
  std::vector<Ratios> ops_;
};

Value measured(const RotatedCase& rotated, Device device, const Options& options) {
  Value row = measure_rotated(rotated, device, options.common.rounds);
  print_rotated(row);
  return row;
}

void measure_dense_part(const Options& options, Device device, Rows& rows) {
  for (const char* precision : {"bf16", "tf32", "f32"}) {
    if (!options.wants_precision(precision)) continue;
    for (const ProductShape& shape : cuda_product_shapes()) {
      rows.row("matmul", to_string(shape), [&] {
        const DecisionScope decisions({.measure = true});
        return measured(cuda_product_case(shape, precision, device), device, options);
      });
    }
  }
  for (const char* precision : {"bf16", "f32"}) {
    if (!options.wants_precision(precision)) continue;
    for (const ConvShape& shape : cuda_conv_shapes()) {
      for (const ConvPass pass : passes_of(shape)) {
        rows.row("conv2d", to_string(shape), [&] {
          const DecisionScope decisions({.measure = true});
          return measured(cuda_conv_case(pass, shape, precision, device), device, options);
        });
      }
    }
  }
  rows.conclude(kDenseTargets);
}

// Our weights are constant only in the forward, as in inference. What the rivals derive from their weights is never timed.
Value measured_sparse(ConvPass pass, const SparseProductCase& of, const Tensor& mask, const char* precision, Device device,
                      const Options& options) {
  const DecisionScope decisions({.measure = true, .forced = way_of(of.pattern)});
  std::optional<ConstantWeights> constant;
  if (pass == ConvPass::forward) constant.emplace();
  const RotatedCase rotated = cuda_sparse_case(pass, of, mask, precision, device);
  Value row = measured(rotated, device, options);
  const Value::List& refused = row.at("rivals_refused").as_list();  // unsupported sides come first
  for (std::size_t i = 0; i < refused.size(); ++i) {
    fmt::print("{:>11} {}: {}: {}\n", "", i < rotated.unsupported.size() ? "unsupported" : "refused",
               refused[i].at("name").as_string(), refused[i].at("why").as_string());
  }
  row.set("density", density_of(mask));
  row.set("weights", constant ? "constant" : "changing");
  row.set("execution", execution_of(decisions, way_of(of.pattern)));
  fmt::print("{:>11} density {:.4f}, weights {}, way of ours: {}\n", "", row.at("density").as_double(),
             row.at("weights").as_string(), row.at("execution").as_string());
  return row;
}

void measure_sparse_part(const Options& options, Device device, Rows& rows) {
  Ratios of_dense{"every op, cuBLASLt's dense product"};  // cuBLASLt's time over ours
  for (const char* precision : {"f32", "bf16", "f16"}) {
    if (!options.wants_precision(precision)) continue;
    for (const SparseProductCase& of : cuda_sparse_cases()) {
      Tensor mask;
      for (const ConvPass pass : {ConvPass::forward, ConvPass::backward_input, ConvPass::backward_weight}) {
        rows.row(str("sparse ", to_string(pass)), to_string(of), [&] {
          if (!mask.defined()) mask = sparse_mask(of);
          Value row = measured_sparse(pass, of, mask, precision, device, options);
          if (const Value* ratio = row.find("dense_ratio")) of_dense.values.push_back(counted(*ratio));
          return row;
        });
      }
    }
  }
  rows.judge(of_dense, {});
  rows.conclude({});
}

double median_ms(const Value& way) { return way.at("ms").at("median").as_double(); }

// An op with the tile that a cost model chooses.
template <class Shape>
struct SweptPart {
  std::string op;
  std::vector<Shape> shapes;
  TilePick (*pick)(const Shape&, Device);
  SweptCase (*make)(const Shape&, Device);
  std::span<const Target> targets = {};
};

// The planner's pick needs no clock, so it is printed before its row is measured.
template <class Shape>
void measure_swept(const SweptPart<Shape>& part, const Options& options, Device device, Rows& rows) {
  Ratios of_model{str(part.op, ", the model's tile")};  // time with the clock's tile over time with the model's
  for (const Shape& shape : part.shapes) {
    rows.row(part.op, to_string(shape), [&] {
      ++of_model.failed;  // counts as failed until it is measured
      const TilePick pick = part.pick(shape, device);
      fmt::print("{}: the planner takes {}{}{}\n", to_string(shape), pick.planned, pick.reason.empty() ? "" : ": ", pick.reason);
      const DecisionScope decisions({.measure = true});
      const SweptCase swept = part.make(shape, device);
      Value row = measured(swept.rotated, device, options);
      if (!swept.taken.empty()) row.set("taken", swept.taken);
      row.set("tiles", swept.tiles);
      row.set("planned", pick.planned);
      row.set("reason", pick.reason);
      const Value::List& ways = row.at("ways").as_list();
      of_model.values.push_back(median_ms(ways[0]) / median_ms(ways[1]));
      --of_model.failed;
      return row;
    });
  }
  rows.judge(of_model, {});
  rows.conclude(part.targets);
}

void measure_memory_part(const Options& options, Device device, Rows& rows) {
  for (const MemoryMaker& maker : memory_cases(options.megabytes, device)) {
    rows.row(maker.op, maker.shape, [&] {
      const Value row = measure_memory(maker.make(), options.megabytes, {.rounds = options.common.rounds, .device = device});
      const Value& ratio = row.at("ratio");
      fmt::print("{:<16} {:<9} {:<16} {:8.3f} ms {:7.0f} GB/s  {:4.2f} ({:.2f}-{:.2f}) of the copy's {:.0f} GB/s\n",
                 row.at("op").as_string(), row.at("pass").as_string(), row.at("shape").as_string(),
                 row.at("tessera_ms").at("median").as_double(), row.at("gbytes_per_second").as_double(),
                 ratio.at("median").as_double(), ratio.at("p10").as_double(), ratio.at("p90").as_double(),
                 row.at("stream_gbytes_per_second").as_double());
      std::fflush(stdout);
      return row;
    });
  }
  rows.conclude(kMemoryTargets);
}

void measure_network_part(const Options& options, Device device, Rows& rows) {
  rows.row("resnet18 SC", "1x224x224x3", [&] {
    const DecisionScope decisions({.measure = true});
    const ConstantWeights constant;
    const NetworkPair networks = folded_resnet18_pair(device);
    return measured(network_case(networks, device), device, options);
  });
  rows.conclude(kNetworkTargets);
}

void measure_core_part(const Options& options, Device device, Rows& rows) {
  measure_swept<ConvShape>({"core conv2d", core_shapes(), &core_pick, &core_case, kCoreTargets}, options, device, rows);
}

void measure_tucker_part(const Options& options, Device device, Rows& rows) {
  measure_swept<cuda::TuckerConvShape>({"Tucker-2", tucker_shapes(), &tucker_pick, &tucker_case}, options, device, rows);
}

struct Part {
  std::string_view name;
  void (*measure)(const Options& options, Device device, Rows& rows);
};
constexpr Part kParts[]{{"dense", measure_dense_part},   {"sparse", measure_sparse_part}, {"core", measure_core_part},
                        {"tucker", measure_tucker_part}, {"memory", measure_memory_part}, {"network", measure_network_part}};

std::string part_names() {
  std::string names;
  for (const Part& part : kParts) {
    names += str(names.empty() ? "" : &part == std::end(kParts) - 1 ? " or " : ", ", part.name);
  }
  return names;
}

void measure(const Options& options) {
  const auto* const part = std::ranges::find(kParts, options.part, &Part::name);
  TESSERA_CHECK(part != std::end(kParts), ConfigError, "cuda_op_bench: --part is '", options.part, "'; needs ", part_names());
  TESSERA_CHECK(options.precision.empty() || options.part == "dense" || options.part == "sparse", ConfigError,
                "cuda_op_bench: --precision is '", options.precision, "', --part '", options.part,
                "'; only dense and sparse have several");
  TESSERA_CHECK(cuda_device_count() > 0, ConfigError, "cuda_op_bench: needs a GPU: ", why_no_cuda());
  const Device device = Device::cuda();
  const Output output{options.common, surroundings_of(options, device)};
  fmt::print("{}, driver for CUDA {}, {}\n", output.surroundings.at("gpu").as_string(),
             output.surroundings.at("driver").as_string(), output.surroundings.at("libraries").as_string());
  Rows rows(options, output);
  part->measure(options, device, rows);
}

int run_program(const std::vector<std::string_view>& words) {
  Options options;
  Arguments arguments("cuda_op_bench", "times ops on a GPU against cuBLASLt, cuDNN, cuSPARSE and the bandwidth of a copy");
  add_common(arguments, options.common);
  arguments.text("--part", options.part, part_names())
      .text("--only", options.only, "op and shape to measure, or a part of them")
      .text("--precision", options.precision, "of part dense: bf16, tf32 or f32; of sparse: f32, bf16 or f16; all without")
      .count("--megabytes", options.megabytes, "size of an operand of memory-bound ops, MiB");
  return run_benchmark(arguments, words, [&] { measure(options); });
}

}  // namespace
}  // namespace tessera::bench

int main(int argc, char** argv) { return tessera::bench::run_program({argv + 1, argv + argc}); }
