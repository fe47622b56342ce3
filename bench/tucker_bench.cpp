// Times a Tucker-2 convolution against the best dense convolution that computes the same function: ours, or oneDNN called
// directly, Winograd included; inference, in which either side keeps what it derives from its weights, and training (forward and
// both backwards).
// Exit codes: 0 measured, 1 the comparison is void (results differ, rival crippled), 2 bad arguments.
#include <fmt/format.h>

#include <limits>
#include <memory>
#include <optional>

#include "bench/dense_cases.h"
#include "bench/result_lines.h"
#include "core/autograd/backward.h"
#include "core/constant_weights.h"
#include "core/cpu/fma_peak.h"
#include "core/decisions.h"
#include "core/error.h"
#include "layers/conv2d.h"
#include "layers/tucker2_conv2d.h"
#include "train/decisions_file.h"
#include "train/environment.h"

namespace tessera::bench {
namespace {

constexpr ConvShape kShape{8, 256, 256, 14, 3};
constexpr double kAgreement = 1e-3;  // of the largest value: three convolutions against one, Winograd among them
constexpr TurnOptions kSweepTurns{.rounds = 15, .seconds = 2e-3};

struct Target {
  Tucker2Ranks ranks;
  double forward, training;  // least ratio; 0 where none is set
};
constexpr Target kTargets[]{{{64, 64}, 5.0, 4.5}, {{32, 32}, 0, 0}, {{128, 128}, 0, 0}};

enum class Phase { forward, training };
const char* to_string(Phase phase) { return phase == Phase::forward ? "forward" : "training"; }

std::shared_ptr<Conv2d> conv_layer(std::int64_t in, std::int64_t out, std::int64_t kernel) {
  auto layer = std::make_shared<Conv2d>(
      Conv2dConfig{.in = in, .out = out, .kernel = {kernel, kernel}, .padding = {kernel / 2, kernel / 2}, .bias = false});
  layer->reset_parameters(1);
  return layer;
}

// One inference, or one forward and backward to the input and every parameter.
Contestant layer_side(std::string name, std::shared_ptr<Module> layer, const Tensor& input, Phase phase) {
  if (phase == Phase::forward) {
    const auto y = std::make_shared<Tensor>();
    const auto run = [=] {
      const NoGrad no_grad;
      *y = {};
      *y = layer->forward(Var(input), {}).value();
    };
    return {std::move(name), run, {}, [=] { return *y; }};
  }
  const Var x(input, true);
  const Tensor grad_y = random_tensor(layer->output_shape(input.shape()), "grad_y");
  const auto clear = [=] {
    x.set_grad({});
    for (const NamedParameter& named : named_parameters(*layer)) named.parameter->set_grad({});
  };
  return {std::move(name), [=] { backward(layer->forward(x, {}), grad_y); }, clear, [=] { return x.grad(); }};
}

// The fastest direct calls of each pass that the phase needs, one after the other.
struct DirectCalls {
  Contestant side;
  std::function<void()> spoil;
};

template <class Ways>
DirectCalls direct_calls(const Tensor& x, const Tensor& weight, Phase phase, const Ways& ways) {
  const Tensor grad_y = random_tensor(kShape.y(), "grad_y");
  const Tensor result = Tensor::empty(phase == Phase::forward ? kShape.y() : kShape.x());
  const Tensor y = phase == Phase::forward ? result : Tensor::empty(kShape.y());
  std::vector<Contestant> chosen;
  const ConvUse use = phase == Phase::forward ? ConvUse::inference : ConvUse::training;
  const auto choose = [&](ConvPass pass, const ConvTensors& tensors) {
    chosen.push_back(sweep(ways(pass, kShape, tensors, use), kSweepTurns).finalists.front());
  };
  choose(ConvPass::forward, {x, weight, y});
  if (phase == Phase::training) {
    choose(ConvPass::backward_input, {result, weight, grad_y});
    choose(ConvPass::backward_weight, {x, Tensor::empty(kShape.weight()), grad_y});
  }
  std::string name = "oneDNN: ";
  for (const Contestant& pass : chosen) name += str(&pass == &chosen.front() ? "" : " + ", pass.name);
  const auto run = [chosen] {
    for (const Contestant& pass : chosen) pass.run();
  };
  const auto spoil = [=] { result.fill(std::numeric_limits<double>::quiet_NaN()); };
  return {{std::move(name), run, {}, [=] { return result; }}, spoil};
}

// The three convolutions that the layer is, each alone.
struct Part {
  std::string name;
  std::shared_ptr<Module> layer;
  Shape input;
};

std::vector<Part> parts_of(Tucker2Ranks ranks) {
  const Shape pixels{kShape.n, kShape.size, kShape.size};
  return {{"1x1 in", conv_layer(kShape.in, ranks.in, 1), pixels.append(kShape.in)},
          {"core", conv_layer(ranks.in, ranks.out, kShape.kernel), pixels.append(ranks.in)},
          {"1x1 out", conv_layer(ranks.out, kShape.out, 1), pixels.append(ranks.out)}};
}

double flops_of(const Module& layer, const Shape& input, Phase phase) {
  const double passes = phase == Phase::forward ? 1 : 3;
  return 2 * passes * static_cast<double>(input[0] * total_cost(layer, input).macs);
}

Value timed(const std::string& name, const Samples& samples, double flops) {
  Value row = Value::map();
  row.set("name", name);
  row.set("ms", to_value(summarise(samples)));
  row.set("gflops", flops / quantile(samples, 0.5) * 1e-6);
  return row;
}

struct Sides {
  std::shared_ptr<Tucker2Conv2d> layer;
  std::shared_ptr<Conv2d> dense;
  Tensor x;
};

Sides make_sides(Tucker2Ranks ranks) {
  auto layer = std::make_shared<Tucker2Conv2d>(Tucker2Conv2dConfig{
      .in = kShape.in, .out = kShape.out, .padding = {1, 1}, .rank_in = ranks.in, .rank_out = ranks.out, .bias = false});
  layer->reset_parameters(1);
  auto dense = conv_layer(kShape.in, kShape.out, kShape.kernel);
  dense->weight().set_value(layer->dense_weight().contiguous());
  return {layer, dense, random_tensor(kShape.x(), "x")};
}

Value measure_phase(const Sides& sides, Tucker2Ranks ranks, Phase phase, const TurnOptions& turns) {
  const DecisionScope decisions({.measure = true});
  std::optional<ConstantWeights> constant;
  if (phase == Phase::forward) constant.emplace();
  const DirectCalls direct = direct_calls(sides.x, sides.dense->weight().value(), phase, conv_rivals);
  std::vector<Contestant> all{layer_side("tucker2", sides.layer, sides.x, phase),
                              layer_side("tessera, dense", sides.dense, sides.x, phase), direct.side};
  check_agreement(all, direct.spoil, kAgreement);
  all.push_back(direct_calls(sides.x, sides.dense->weight().value(), phase, blocked_conv_rivals).side);
  const std::vector<Part> parts = parts_of(ranks);
  for (const Part& part : parts) all.push_back(layer_side(part.name, part.layer, random_tensor(part.input, "x"), phase));
  const std::vector<Samples> samples = time_in_turns(all, turns);

  const std::size_t rival = 1 + fastest(std::span(samples).subspan(1, 2));
  const double flops = flops_of(*sides.layer, kShape.x(), phase);
  const double dense_flops = flops_of(*sides.dense, kShape.x(), phase);
  Value row = Value::map();
  row.set("shape", bench::to_string(kShape));
  row.set("rank_out", ranks.out);
  row.set("rank_in", ranks.in);
  row.set("phase", to_string(phase));
  row.set("weights", constant ? "constant" : "changing");
  row.set("rounds", turns.rounds);
  row.set("tucker", timed(all[0].name, samples[0], flops));
  row.set("rival", timed(all[rival].name, samples[rival], dense_flops));
  row.set("other_dense", timed(all[3 - rival].name, samples[3 - rival], dense_flops));
  row.set("ratio", to_value(summarise(ratios(samples[rival], samples[0]))));
  row.set("flop_ratio", dense_flops / flops);
  row.set("blocked_dense", timed(all[3].name, samples[3], dense_flops));
  row.set("blocked_ratio", to_value(summarise(ratios(samples[3], samples[0]))));
  Value::List rows;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    rows.push_back(timed(parts[i].name, samples[4 + i], flops_of(*parts[i].layer, parts[i].input, phase)));
  }
  row.set("parts", Value::list(std::move(rows)));
  row.set("decisions", tessera::to_value(decisions.taken()).at("decisions"));
  return row;
}

void print_timed(const char* indent, const Value& row) {
  fmt::print("{}{:<70} {:8.3f} ms {:5.0f} GF/s\n", indent, row.at("name").as_string(), row.at("ms").at("median").as_double(),
             row.at("gflops").as_double());
}

void print_row(const Value& row, double target) {
  const Value& ratio = row.at("ratio");
  const double median = ratio.at("median").as_double();
  fmt::print("ranks {}/{} {}: {:.2f}x ({:.2f}-{:.2f}) the rival, {:.2f}x dense in blocked layout; {:.2f} times fewer FLOPs{}\n",
             row.at("rank_out").as_int(), row.at("rank_in").as_int(), row.at("phase").as_string(), median,
             ratio.at("p10").as_double(), ratio.at("p90").as_double(), row.at("blocked_ratio").at("median").as_double(),
             row.at("flop_ratio").as_double(),
             target > 0 ? fmt::format("; target {}x: {}", target, median >= target ? "met" : "missed") : "");
  for (const char* side : {"rival", "other_dense", "blocked_dense", "tucker"}) print_timed("  ", row.at(side));
  for (const Value& part : row.at("parts").as_list()) print_timed("    ", part);
  std::fflush(stdout);
}

void measure(const CommonOptions& options) {
  set_compute_threads(options.threads);
  const Value surroundings = describe_surroundings(options.threads);
  const double peak = cpu::fma_peak_gflops(static_cast<int>(options.threads));
  fmt::print("multiply-add peak {:.0f} GFLOP/s, oneDNN's 1024^3 product {:.0f}\n", peak, guarded_rival_gflops(peak));
  Value::List rows;
  for (const Target& target : kTargets) {
    const Sides sides = make_sides(target.ranks);
    for (const Phase phase : {Phase::forward, Phase::training}) {
      const double least = phase == Phase::forward ? target.forward : target.training;
      Value& row = rows.emplace_back(measure_phase(sides, target.ranks, phase, {.rounds = options.rounds}));
      print_row(row, least);
      if (least > 0) row.set("target", least);
      row.set("fma_peak_gflops", peak);
    }
  }
  for (const Value& row : rows) publish(options, surroundings, row);  // all or none: a run that is cut leaves no part of a table
}

int run_program(const std::vector<std::string_view>& words) {
  CommonOptions options{.results = TESSERA_BENCH_DIR "/results/tucker_bench.jsonl"};
  Arguments arguments("tucker_bench", "times a Tucker-2 convolution against the best dense one");
  add_common(arguments, options);
  return run_benchmark(arguments, words, [&] { measure(options); });
}

}  // namespace
}  // namespace tessera::bench

int main(int argc, char** argv) { return tessera::bench::run_program({argv + 1, argv + argc}); }
