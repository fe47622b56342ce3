// Times networks as other programs run them, against the forward that `tessera table` times: through the C interface, from a file
// of `tessera export --layout tessera --batch N`. The logits are compared first. Then both take turns on the same images, each in
// a separate process, because with two teams of threads in one process the threads of both would sleep between layers. The load
// of the file is timed too. Targets: the C interface at 0.95 of the forward's speed or more, a ResNet-18 loaded in 150 ms. If an
// interpreter with ONNX Runtime is given, it takes turns too, on exports of the dense network of the same function and of
// factored layers as chains. It runs with its fastest settings of threads and waiting.
#include <fmt/format.h>

#include <array>
#include <chrono>
#include <cstring>
#include <iostream>
#include <memory>
#include <span>

#include "bench/cases/resnet18_sc.h"
#include "bench/cases/sparse_network.h"
#include "bench/difference.h"
#include "bench/result_lines.h"
#include "bench/rivals/modes_rival.h"
#include "bench/rivals/onnx_rival.h"
#include "bench/turns.h"
#include "core/device/constant_weights.h"
#include "core/device/decisions.h"
#include "core/io/child_process.h"
#include "core/io/scratch_folder.h"
#include "core/io/vfs.h"
#include "core/rng.h"
#include "core/support/error.h"
#include "include/tessera.h"
#include "layers/fold.h"
#include "layers/models/model.h"
#include "train/report/export_onnx.h"
#include "train/report/inference_choices.h"
#include "train/run/environment.h"
#include "train/run/network_file.h"
#include "train/run/saved_use.h"

namespace tessera::bench {
namespace {

constexpr double kAgreement = 1e-5;  // the same kernels
constexpr double kOnnxAgreement = 1e-3;  // chains of factors against one convolution each, twenty layers deep
constexpr double kTarget = 0.95;
constexpr int kLoads = 7;
constexpr std::int64_t kSide = 224;
constexpr std::int64_t kClasses = 1000;
constexpr std::int64_t kSweepCalls = 5;
constexpr double kNearBest = 1.25;  // times the best way of a sweep: ONNX Runtime's ways up to here take part in the rounds
constexpr std::size_t kMostWays = 2;
constexpr const char* kImages = "images.f32";

struct Options {
  CommonOptions common{.rounds = 15, .results = TESSERA_BENCH_DIR "/results/outlet_bench.jsonl"};
  std::string network = "all";
  std::string python;  // an interpreter that has ONNX Runtime; if empty, it takes no part
  // For the process that is the C interface's side: its network, and a file with the batch in f32.
  std::string serve;
  std::string images;
  std::int64_t batch = 1;
};

std::unique_ptr<Module> dense(const char* name) {
  auto network = build_model(named_model(name, kClasses), {1, kSide, kSide, 3});
  initialize(*network, 1);
  return network;
}

struct Network {
  std::unique_ptr<Module> ours;
  std::unique_ptr<Module> dense = {};  // of the same function; null if ours is dense
  bool chains = false;  // in ONNX, ours differs from the dense network
};

Network tucker_resnet18() {
  NetworkPair pair = resnet18_pair();
  return {std::move(pair.tucker), std::move(pair.dense), true};
}

// In ONNX, sparse layers are dense layers with zeros.
Network sparse_mobilenet() {
  const SparseNetwork sparse = sparse_networks("mobilenet_v1").front();
  Network network{dense("mobilenet_v1"), dense("mobilenet_v1")};
  make_sparse(network.ours, sparse);
  mask_layers(*network.dense, sparse);
  return network;
}

struct NamedNetwork {
  const char* name;
  Network (*build)();
};
const std::array<NamedNetwork, 4> kNetworks{{{"resnet18", [] { return Network{dense("resnet18")}; }},
                                             {"mobilenet_v1", [] { return Network{dense("mobilenet_v1")}; }},
                                             {"resnet18, tucker2", tucker_resnet18},
                                             {"mobilenet_v1, sparse", sparse_mobilenet}}};

double milliseconds_of(const auto& work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
}

// A network called through the C interface.
class Outlet {
 public:
  Outlet(const std::string& file, std::int64_t threads) {
    const tessera_options options{sizeof(options), static_cast<std::int32_t>(threads), nullptr, nullptr};
    check(tessera_load(file.c_str(), &options, &network_));
  }
  ~Outlet() { tessera_free(network_); }
  Outlet(const Outlet&) = delete;
  Outlet& operator=(const Outlet&) = delete;

  void run(const Tensor& x, std::vector<float>& scores) const {
    const std::array<std::int64_t, 2> scores_shape{x.dim(0), kClasses};
    const tessera_tensor in{nullptr, TESSERA_FLOAT32, x.rank(), x.shape().begin(), const_cast<void*>(x.raw())};
    const tessera_tensor out{nullptr, TESSERA_FLOAT32, 2, scores_shape.data(), scores.data()};
    check(tessera_run(network_, &in, 1, &out, 1));
  }

 private:
  static void check(tessera_status status) { TESSERA_CHECK(status == TESSERA_OK, Error, tessera_last_error()); }

  tessera_network* network_ = nullptr;
};

// Exports the network with choices measured for this batch. Returns the use that the file states.
NetworkUse export_for(Module& network, std::int64_t batch, const std::string& file) {
  const Shape input{1, kSide, kSide, 3};
  NetworkUse use;
  use.task = "classification";
  add_inference_choices(use, network, input, std::array{batch});
  write_network(real_vfs(), network, input, file, use);
  return use;
}

Summary time_loads(const std::string& file, std::int64_t threads) {
  std::vector<double> ms;
  for (int i = 0; i < kLoads; ++i) ms.push_back(milliseconds_of([&] { const Outlet loaded(file, threads); }));
  return summarise(ms);
}

std::vector<double> repeat(std::int64_t count, const auto& work) {
  std::vector<double> ms;
  for (std::int64_t i = 0; i < count; ++i) ms.push_back(milliseconds_of(work));
  return ms;
}

// This program in a second process, where it acts as a C program that runs the network of a file.
class OutletProcess {
 public:
  OutletProcess(const std::string& file, const std::string& images, std::int64_t batch, std::int64_t threads)
      : child_({"/proc/self/exe", "--serve", file, "--images", images, "--batch", str(batch), "--threads", str(threads)}, {}) {}

  std::vector<float> scores() {
    const std::vector<double> all = numbers(ask("values").at("values"));
    return {all.begin(), all.end()};
  }
  std::vector<double> run(std::int64_t count) { return numbers(ask(str("time ", count)).at("ms")); }

 private:
  Value ask(const std::string& line) { return child_.ask(line, "the C interface's process"); }

  ChildProcess child_;
};

// Answers the requests of OutletProcess line by line until the input ends.
void serve(const Options& options) {
  const Outlet outlet(options.serve, options.common.threads);
  const Tensor x = Tensor::empty({options.batch, kSide, kSide, 3});
  const std::string bytes = real_vfs().read_file(options.images);
  TESSERA_CHECK(bytes.size() == x.bytes(), IoError, options.images, ": has ", bytes.size(), " bytes; needs ", x.bytes());
  std::memcpy(x.raw(), bytes.data(), bytes.size());
  std::vector<float> scores(static_cast<std::size_t>(options.batch * kClasses));
  for (std::string line; std::getline(std::cin, line);) {
    Value answer = Value::map();
    if (line == "values") {
      outlet.run(x, scores);
      answer.set("values", to_value(std::vector<double>(scores.begin(), scores.end())));
    } else {
      TESSERA_CHECK(line.starts_with("time "), ConfigError, "outlet_bench --serve: asked '", line, "'");
      answer.set("ms", to_value(repeat(std::stoll(line.substr(5)), [&] { outlet.run(x, scores); })));
    }
    std::cout << to_json(answer) << std::endl;
  }
}

struct Sides {
  std::unique_ptr<Module> network;  // folded
  OutletProcess outlet;
  Tensor x;
  std::vector<float> scores;  // from the C interface
};

// The largest difference of the two sides' logits, relative to the largest logit.
double check_agreement(Sides& sides, const std::string& what) {
  sides.scores = sides.outlet.scores();
  const double difference =
      difference_of((*sides.network)(Var(sides.x), Context{}).value().to_vector<float>(), sides.scores).relative();
  TESSERA_CHECK(difference <= kAgreement, NumericError, what, ": the C interface differs by ", difference,
                " of the largest logit");
  return difference;
}

// ONNX Runtime on one model, with the settings that a short sweep finds near its best.
struct OnnxSide {
  std::string name;  // of the model
  std::vector<std::unique_ptr<OnnxRival>> ways;
  double difference = 0;  // of its scores from ours, relative to the largest
};

OnnxSide onnx_side(const std::string& name, Module& network, const OnnxProgram& program, const std::filesystem::path& folder,
                   const Sides& sides) {
  const OnnxQuestion question{folder / (name + ".onnx"), folder / kImages, sides.x.shape()};
  export_onnx(real_vfs(), network, {1, kSide, kSide, 3}, {}, question.model);
  OnnxSide side{name, {}, 0};
  std::vector<std::unique_ptr<OnnxRival>> swept;
  std::vector<double> medians;
  for (const OnnxWay& way : onnx_ways(program.threads)) {
    OnnxRival& rival = *swept.emplace_back(std::make_unique<OnnxRival>(program, question, way));
    const std::string what = str("ONNX Runtime, ", name, ", ", to_string(way));
    side.difference = std::max(side.difference, check_values(sides.scores, rival.values(), what, kOnnxAgreement));
    medians.push_back(quantile(rival.run(kSweepCalls), 0.5));
  }
  for (const std::size_t way : lowest(medians, kNearBest, kMostWays)) side.ways.push_back(std::move(swept[way]));
  return side;
}

std::vector<OnnxSide> onnx_sides(Network& network, const Options& options, const std::filesystem::path& folder,
                                 const Sides& sides) {
  std::vector<OnnxSide> all;
  if (options.python.empty()) return all;
  const OnnxProgram program{options.python, TESSERA_BENCH_DIR "/outlet_bench_onnx.py", static_cast<int>(options.common.threads)};
  all.push_back(onnx_side("dense", network.dense ? *network.dense : *network.ours, program, folder, sides));
  if (network.chains) all.push_back(onnx_side("chains", *network.ours, program, folder, sides));
  return all;
}

// Sets onnx_<model> to {name, ms}, onnx_<model>_ratio to its time over the C interface's, and onnx_<model>_difference. `samples`
// are the times of its ways.
void set_onnx(Value& row, const OnnxSide& side, std::span<const Samples> samples, const Samples& c_interface) {
  const std::size_t best = fastest(samples);
  const std::string key = "onnx_" + side.name;
  row.set(key, timed("ONNX Runtime, " + to_string(side.ways[best]->way()), samples[best]));
  row.set(key + "_ratio", ratio_value(samples[best], c_interface));
  row.set(key + "_difference", side.difference);
  row.set("onnx_runtime", side.ways[best]->environment());
  fmt::print("  ONNX Runtime, {}: {:.2f} ms, {:.2f} by the C interface: {}\n", side.name, samples[best].median(),
             c_interface.median(), ratio_text(row.at(key + "_ratio")));
}

// Times in turn: the forward, the C interface, then every way of each side of ONNX Runtime.
std::vector<Samples> time_sides(Sides& sides, const std::vector<OnnxSide>& onnx, std::int64_t rounds) {
  std::vector<SelfTimed> timed_sides{
      [&](std::int64_t count) { return repeat(count, [&] { (*sides.network)(Var(sides.x), Context{}); }); },
      [&](std::int64_t count) { return sides.outlet.run(count); }};
  for (const OnnxSide& side : onnx) {
    for (const auto& way : side.ways) timed_sides.emplace_back([&way](std::int64_t count) { return way->run(count); });
  }
  return time_in_turns(timed_sides, rounds, calls_per_turn(timed_sides));
}

void set_times(Value& row, const std::vector<Samples>& samples, const std::vector<OnnxSide>& onnx) {
  row.set("forward", to_value(samples[0]));
  row.set("c_interface", to_value(samples[1]));
  row.set("ratio", ratio_value(samples[0], samples[1]));
  row.set("target", kTarget);
  std::span<const Samples> left(samples.begin() + 2, samples.end());
  for (const OnnxSide& side : onnx) {
    set_onnx(row, side, left.first(side.ways.size()), samples[1]);
    left = left.subspan(side.ways.size());
  }
}

void measure_case(const NamedNetwork& of, std::int64_t batch, const Options& options, const Value& surroundings) {
  const std::string what = str(of.name, " batch ", batch);
  const ScratchFolder folder("tessera_bench");
  const std::string file = folder.path() / "model.safetensors";
  Network network = of.build();
  const NetworkUse use = export_for(*network.ours, batch, file);
  const NoGrad no_grad;
  const DecisionScope decisions({.known = decisions_of(use)});
  const ConstantWeights constant;
  const Tensor x = Tensor::empty({batch, kSide, kSide, 3});
  fill_normal(x, RngStream(1, "bench", "images"), 0, 1);
  const std::string images = folder.path() / kImages;
  write_file_atomically(real_vfs(), images, {static_cast<const char*>(x.raw()), x.bytes()});
  Sides sides{for_inference(*network.ours), {file, images, batch, options.common.threads}, x, {}};
  Value row = Value::map();
  row.set("network", of.name);
  row.set("batch", batch);
  row.set("rounds", options.common.rounds);
  row.set("agreement", check_agreement(sides, what));
  const std::vector<OnnxSide> onnx = onnx_sides(network, options, folder.path(), sides);
  fmt::print("{}\n", what);
  set_times(row, time_sides(sides, onnx, options.common.rounds), onnx);
  const Summary load = time_loads(file, options.common.threads);
  row.set("load_ms", to_value(load));
  row.set("decisions", use.decisions.at("decisions"));
  fmt::print("  C interface {} of the forward's speed; load {:.1f} ms\n", ratio_text(row.at("ratio")), load.median);
  publish(options.common, surroundings, row);
}

void measure(const Options& options) {
  set_compute_threads(options.common.threads);
  const Value surroundings = describe_surroundings(options.common.threads);
  bool any = false;
  for (const NamedNetwork& network : kNetworks) {
    if (options.network != "all" && options.network != network.name) continue;
    any = true;
    for (const std::int64_t batch : {1, 32}) measure_case(network, batch, options, surroundings);
  }
  TESSERA_CHECK(any, ConfigError, "outlet_bench: there is no network '", options.network,
                "'; there are resnet18, mobilenet_v1, \"resnet18, tucker2\", \"mobilenet_v1, sparse\" and all");
}

int run_program(const std::vector<std::string_view>& words) {
  Options options;
  Arguments arguments("outlet_bench", "times networks behind the C interface against their forward and ONNX Runtime");
  add_common(arguments, options.common);
  arguments.text("--network", options.network, "resnet18, mobilenet_v1, \"resnet18, tucker2\", \"mobilenet_v1, sparse\" or all")
      .text("--python", options.python, "interpreter that has onnxruntime; without one it takes no part")
      .text("--serve", options.serve, "for the program itself: the network that answers, line by line")
      .text("--images", options.images, "with --serve: file of the batch, f32")
      .count("--batch", options.batch, "with --serve: images in that file");
  return run_benchmark(arguments, words, [&] {
    if (!options.serve.empty()) return serve(options);
    constexpr std::array<std::string_view, 2> kOfServe{"--images", "--batch"};
    arguments.refuse(kOfServe, "without --serve");
    measure(options);
  });
}

}  // namespace
}  // namespace tessera::bench

int main(int argc, char** argv) { return tessera::bench::run_program({argv + 1, argv + argc}); }
