// Times our ops on a GPU: products and convolutions against the best of cuBLASLt and cuDNN called directly, TDC's core
// convolutions against cuDNN, ResNet-18 in TDC's ranks against the dense network, the rest against the bandwidth of a copy. Sides
// take turns in one process, work is recorded as graphs, sets of tensors rotate so that no cache holds them. Prints a table;
// appends one line per op, shape and pass as it goes. Exit codes: 0 measured, 1 the comparison is void, 2 bad arguments or no
// GPU.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "bench/cuda_cases.h"
#include "bench/cuda_core.h"
#include "bench/cuda_network.h"
#include "bench/memory_cases.h"
#include "bench/result_lines.h"
#include "core/constant_weights.h"
#include "core/decisions.h"
#include "core/device_info.h"
#include "core/error.h"

namespace tessera::bench {
namespace {

constexpr double kDenseTarget = 0.97;  // least ratio of the library's time to ours
constexpr double kMemoryTarget = 0.85;  // least share of the copy's bandwidth

struct Options {
  CommonOptions common{.rounds = 15, .results = TESSERA_BENCH_DIR "/results/cuda_op_bench.jsonl"};
  std::string part;
  std::string only;
  std::int64_t megabytes = 1024;

  bool wants(const std::string& op, const std::string& shape) const {
    return str(op, ' ', shape).find(only) != std::string::npos;
  }
};

// Where lines go, and what all of them say.
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
  shared.set("libraries", info.libraries);
  shared.set("part", options.part);
  return shared;
}

void print_rotated(const Value& row) {
  const Value& ratio = row.at("ratio");
  fmt::print("{:<11} {:<38} {:<15} {:<4} {:9.4f} ms ({:.4f}-{:.4f}) {:8.0f} GF/s  {:5.2f} ({:.2f}-{:.2f}) x {}\n",
             row.at("op").as_string(), row.at("shape").as_string(), row.at("pass").as_string(), row.at("precision").as_string(),
             row.at("tessera_ms").at("median").as_double(), row.at("tessera_ms").at("p10").as_double(),
             row.at("tessera_ms").at("p90").as_double(), row.at("gflops").as_double(), ratio.at("median").as_double(),
             ratio.at("p10").as_double(), ratio.at("p90").as_double(), row.at("rival").at("name").as_string());
  for (const Value& way : row.at("ways").as_list()) {
    fmt::print("{:>11} {}: {:.4f} ms, {:.2f} of the first's time\n", "", way.at("name").as_string(),
               way.at("ms").at("median").as_double(), way.at("ratio").at("median").as_double());
  }
  std::fflush(stdout);
}

// Ratios of a part, for what is said of all of them.
struct Ratios {
  std::vector<double> values;

  void add(const Value& row) { values.push_back(row.at("ratio").at("median").as_double()); }
  double least() const { return *std::ranges::min_element(values); }
  double geometric_mean() const {
    double logs = 0;
    for (const double value : values) logs += std::log(value);
    return std::exp(logs / static_cast<double>(values.size()));
  }
};

void print_total(const Ratios& ratios, double target) {
  fmt::print("{} rows; geometric mean {:.3f}, least {:.3f}; target {} of the least: {}\n", ratios.values.size(),
             ratios.geometric_mean(), ratios.least(), target, ratios.least() >= target ? "met" : "missed");
}

// The rows of a part. One that cannot be measured does not stop those behind it.
class Rows {
 public:
  explicit Rows(const Options& options) : options_(options) {}

  template <class Measure>
  void row(const std::string& op, const std::string& shape, const Measure& measure) {
    if (!options_.wants(op, shape)) return;
    ++tried_;
    try {
      measure();
    } catch (const Error& error) {
      ++failed_;
      fmt::print("{} {} failed: {}\n", op, shape, error.what());
      std::fflush(stdout);
    }
  }
  bool any() const {
    TESSERA_CHECK(tried_ > 0, ConfigError, "cuda_op_bench: --only '", options_.only, "' is in no op and shape of part ",
                  options_.part);
    return failed_ < tried_;
  }
  void check_all() const {
    TESSERA_CHECK(failed_ == 0, InternalError, "cuda_op_bench: ", failed_, " of ", tried_, " rows failed");
  }

 private:
  const Options& options_;
  std::int64_t tried_ = 0;
  std::int64_t failed_ = 0;
};

void measure_dense_part(const Options& options, Device device, const Output& output) {
  Ratios ratios;
  const auto measure = [&](const RotatedCase& rotated) {
    const Value row = measure_rotated(rotated, device, options.common.rounds);
    print_rotated(row);
    output.line(row);
    ratios.add(row);
  };
  Rows rows(options);
  for (const char* precision : {"bf16", "tf32", "f32"}) {
    for (const ProductShape& shape : cuda_product_shapes()) {
      rows.row("matmul", to_string(shape), [&] {
        const DecisionScope decisions({.measure = true});
        measure(cuda_product_case(shape, precision, device));
      });
    }
  }
  for (const char* precision : {"bf16", "f32"}) {
    for (const ConvShape& shape : cuda_conv_shapes()) {
      for (const ConvPass pass : passes_of(shape)) {
        rows.row("conv2d", to_string(shape), [&] {
          const DecisionScope decisions({.measure = true});
          measure(cuda_conv_case(pass, shape, precision, device));
        });
      }
    }
  }
  if (rows.any()) print_total(ratios, kDenseTarget);
  rows.check_all();
}

void measure_core_part(const Options& options, Device device, const Output& output) {
  Ratios ratios;
  Ratios of_model;
  Rows rows(options);
  for (const ConvShape& shape : core_shapes()) {
    rows.row("core conv2d", to_string(shape), [&] {
      const DecisionScope decisions({.measure = true});
      const CoreCase core = core_case(shape, device);
      Value row = measure_rotated(core.rotated, device, options.common.rounds);
      row.set("tiles", core.tiles);
      print_rotated(row);
      output.line(row);
      ratios.add(row);
      of_model.add(row.at("ways").as_list().front());
    });
  }
  if (rows.any()) {
    fmt::print(
        "core convolutions against cuDNN's best: {} rows, geometric mean {:.2f}x, least {:.2f}x; the model's tile takes {:.2f} "
        "times the measured one's time (geometric mean)\n",
        ratios.values.size(), ratios.geometric_mean(), ratios.least(), of_model.geometric_mean());
  }
  rows.check_all();
}

void measure_memory_part(const Options& options, Device device, const Output& output) {
  Ratios ratios;
  Rows rows(options);
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
      output.line(row);
      ratios.add(row);
    });
  }
  if (rows.any()) print_total(ratios, kMemoryTarget);
  rows.check_all();
}

void measure_network_part(const Options& options, Device device, const Output& output) {
  const DecisionScope decisions({.measure = true});
  const ConstantWeights constant;
  const NetworkPair networks = resnet18_pair(device);
  const Value row = measure_rotated(network_case(networks, device), device, options.common.rounds);
  print_rotated(row);
  output.line(row);
}

void measure(const Options& options) {
  TESSERA_CHECK(cuda_device_count() > 0, ConfigError, "cuda_op_bench: needs a GPU: ", why_no_cuda());
  const Device device = Device::cuda();
  const Output output{options.common, surroundings_of(options, device)};
  fmt::print("{}, driver for CUDA {}, {}\n", output.surroundings.at("gpu").as_string(),
             output.surroundings.at("driver").as_string(), output.surroundings.at("libraries").as_string());
  if (options.part == "dense") return measure_dense_part(options, device, output);
  if (options.part == "core") return measure_core_part(options, device, output);
  if (options.part == "memory") return measure_memory_part(options, device, output);
  if (options.part == "network") return measure_network_part(options, device, output);
  throw ConfigError(str("cuda_op_bench: --part is '", options.part, "'; needs dense, core, memory or network"));
}

int run_program(const std::vector<std::string_view>& words) {
  Options options;
  Arguments arguments("cuda_op_bench", "times ops on a GPU against cuBLASLt, cuDNN and the bandwidth of a copy");
  add_common(arguments, options.common);
  arguments.text("--part", options.part, "dense, core, memory or network")
      .text("--only", options.only, "op and shape to measure, or a part of them")
      .count("--megabytes", options.megabytes, "size of an operand of memory-bound ops, MiB");
  return run_benchmark(arguments, words, [&] { measure(options); });
}

}  // namespace
}  // namespace tessera::bench

int main(int argc, char** argv) { return tessera::bench::run_program({argv + 1, argv + argc}); }
