// Times networks as other programs run them, beside the forward that `tessera table` times: through the C interface, from a file
// of `tessera export --layout tessera --batch N`. The logits are compared first; then both take turns on the same images. The
// file's load is timed too. Targets: the C interface at 0.95 of the forward's speed or more, a ResNet-18 loaded in 150 ms.
#include <fmt/format.h>

#include <array>
#include <chrono>
#include <memory>

#include "bench/cases/resnet18_sc.h"
#include "bench/difference.h"
#include "bench/result_lines.h"
#include "bench/turns.h"
#include "core/device/constant_weights.h"
#include "core/device/decisions.h"
#include "core/io/scratch_folder.h"
#include "core/rng.h"
#include "core/support/error.h"
#include "include/tessera.h"
#include "layers/fold.h"
#include "layers/models/model.h"
#include "train/report/inference_choices.h"
#include "train/run/environment.h"
#include "train/run/network_file.h"
#include "train/run/saved_use.h"

namespace tessera::bench {
namespace {

constexpr double kAgreement = 1e-5;  // the same kernels
constexpr double kTarget = 0.95;
constexpr int kLoads = 7;
constexpr std::int64_t kSide = 224;
constexpr std::int64_t kClasses = 1000;

struct Options {
  CommonOptions common{.rounds = 15, .results = TESSERA_BENCH_DIR "/results/outlet_bench.jsonl"};
  std::string network = "all";
};

struct Network {
  const char* name;
  std::unique_ptr<Module> (*build)();
};

template <const char* kName>
std::unique_ptr<Module> dense() {
  auto network = build_model(named_model(kName, kClasses), {1, kSide, kSide, 3});
  initialize(*network, 1);
  return network;
}

constexpr char kResnet18[] = "resnet18";
constexpr char kMobilenet[] = "mobilenet_v1";
const std::array<Network, 3> kNetworks{{{kResnet18, dense<kResnet18>},
                                        {kMobilenet, dense<kMobilenet>},
                                        {"resnet18, tucker2", [] { return std::move(resnet18_pair().tucker); }}}};

double milliseconds_of(const auto& work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
}

// A network behind the C functions.
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

// With the choices of a clock for this batch; its use is what the file says.
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

struct Sides {
  std::unique_ptr<Module> network;  // folded
  Outlet outlet;
  Tensor x;
  std::vector<float> scores;

  double forward() {
    return milliseconds_of([this] { (*network)(Var(x), Context{}); });
  }
  double call() {
    return milliseconds_of([this] { outlet.run(x, scores); });
  }
};

// The largest difference of the two, of the largest logit.
double check_agreement(Sides& sides, const std::string& what) {
  sides.call();
  const double difference =
      difference_of((*sides.network)(Var(sides.x), Context{}).value().to_vector<float>(), sides.scores).relative();
  TESSERA_CHECK(difference <= kAgreement, NumericError, what, ": the C interface differs by ", difference,
                " of the largest logit");
  return difference;
}

std::vector<double> repeat(std::int64_t count, const auto& timed) {
  std::vector<double> ms;
  for (std::int64_t i = 0; i < count; ++i) ms.push_back(timed());
  return ms;
}

void measure_case(const Network& of, std::int64_t batch, const Options& options, const Value& surroundings) {
  const std::string what = str(of.name, " batch ", batch);
  const ScratchFolder folder("tessera_bench");
  const std::string file = folder.path() / "model.safetensors";
  const std::unique_ptr<Module> network = of.build();
  const NetworkUse use = export_for(*network, batch, file);
  const NoGrad no_grad;
  const DecisionScope decisions({.known = decisions_of(use)});
  const ConstantWeights constant;
  Sides sides{for_inference(*network), Outlet(file, options.common.threads), Tensor::empty({batch, kSide, kSide, 3}),
              std::vector<float>(static_cast<std::size_t>(batch * kClasses))};
  fill_normal(sides.x, RngStream(1, "bench", "images"), 0, 1);
  Value row = Value::map();
  row.set("network", of.name);
  row.set("batch", batch);
  row.set("rounds", options.common.rounds);
  row.set("agreement", check_agreement(sides, what));
  const std::vector<SelfTimed> timed_sides{[&](std::int64_t count) { return repeat(count, [&] { return sides.forward(); }); },
                                           [&](std::int64_t count) { return repeat(count, [&] { return sides.call(); }); }};
  const std::vector<Samples> samples = time_in_turns(timed_sides, options.common.rounds, calls_per_turn(timed_sides));
  const Summary load = time_loads(file, options.common.threads);
  row.set("forward", to_value(samples[0]));
  row.set("c_interface", to_value(samples[1]));
  row.set("ratio", ratio_value(samples[0], samples[1]));
  row.set("target", kTarget);
  row.set("load_ms", to_value(load));
  row.set("decisions", use.decisions.at("decisions"));
  fmt::print("{}: C interface {} of the forward's speed; load {:.1f} ms\n", what, ratio_text(row.at("ratio")), load.median);
  publish(options.common, surroundings, row);
}

void measure(const Options& options) {
  set_compute_threads(options.common.threads);
  const Value surroundings = describe_surroundings(options.common.threads);
  bool any = false;
  for (const Network& network : kNetworks) {
    if (options.network != "all" && options.network != network.name) continue;
    any = true;
    for (const std::int64_t batch : {1, 32}) measure_case(network, batch, options, surroundings);
  }
  TESSERA_CHECK(any, ConfigError, "outlet_bench: there is no network '", options.network,
                "'; there are resnet18, mobilenet_v1, \"resnet18, tucker2\" and all");
}

int run_program(const std::vector<std::string_view>& words) {
  Options options;
  Arguments arguments("outlet_bench", "times networks behind the C interface against their forward");
  add_common(arguments, options.common);
  arguments.text("--network", options.network, "resnet18, mobilenet_v1, \"resnet18, tucker2\" or all");
  return run_benchmark(arguments, words, [&] { measure(options); });
}

}  // namespace
}  // namespace tessera::bench

int main(int argc, char** argv) { return tessera::bench::run_program({argv + 1, argv + argc}); }
