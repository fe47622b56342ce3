#include "bench/cases/tucker_cases.h"

#include <limits>
#include <optional>

#include "bench/cases/dense_cases.h"
#include "bench/result_lines.h"
#include "core/autograd/backward.h"
#include "core/device/constant_weights.h"
#include "core/device/decisions.h"
#include "core/support/error.h"
#include "train/run/decisions_file.h"

namespace tessera::bench {
namespace {

constexpr double kAgreement = 1e-3;  // of the largest value: three convolutions against one, Winograd among them
constexpr TurnOptions kSweepTurns{.rounds = 15, .seconds = 2e-3};

std::shared_ptr<Conv2d> conv_layer(std::int64_t in, std::int64_t out, std::int64_t kernel) {
  auto layer = std::make_shared<Conv2d>(
      Conv2dConfig{.in = in, .out = out, .kernel = {kernel, kernel}, .padding = {kernel / 2, kernel / 2}, .bias = false});
  layer->reset_parameters(1);
  return layer;
}

// One inference, or one forward and backward to the input and every parameter.
Contestant layer_side(std::string name, std::shared_ptr<Module> layer, const Tensor& input, Phase phase) {
  if (phase == Phase::inference) {
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

// Of an inference every way there is; of training the ways of its passes that a sweep found the fastest, one after the other.
struct DirectCalls {
  std::vector<Contestant> sides;
  std::function<void()> spoil;
};

Contestant in_sequence(const std::vector<Contestant>& passes, const Tensor& result) {
  std::string name = "oneDNN: ";
  for (const Contestant& pass : passes) name += str(&pass == &passes.front() ? "" : " + ", pass.name);
  const auto run = [passes] {
    for (const Contestant& pass : passes) pass.run();
  };
  return {std::move(name), run, {}, [result] { return result; }};
}

template <class Ways>
DirectCalls direct_calls(const TuckerSides& sides, Phase phase, const Ways& ways) {
  const ConvShape& shape = sides.shape;
  const Tensor& weight = sides.dense->weight().value();
  const auto all_ways = [&](ConvPass pass, const ConvTensors& tensors) {
    std::vector<Contestant> found =
        ways(pass, shape, tensors, phase == Phase::inference ? ConvUse::inference : ConvUse::training);
    TESSERA_CHECK(!found.empty(), InternalError, "conv2d ", to_string(shape), ", ", to_string(pass),
                  ": oneDNN has no fast way; needs one to compare with");
    return found;
  };
  const auto fastest_way = [&](ConvPass pass, const ConvTensors& tensors) {
    return sweep(all_ways(pass, tensors), kSweepTurns).finalists.front();
  };
  const Tensor result = Tensor::empty(phase == Phase::inference ? shape.y() : shape.x());
  DirectCalls direct{{}, [result] { result.fill(std::numeric_limits<double>::quiet_NaN()); }};
  if (phase == Phase::inference) {
    for (const Contestant& way : all_ways(ConvPass::forward, {sides.x, weight, result})) {
      direct.sides.push_back(in_sequence({way}, result));
    }
    return direct;
  }
  const Tensor grad_y = random_tensor(shape.y(), "grad_y");
  direct.sides.push_back(in_sequence({fastest_way(ConvPass::forward, {sides.x, weight, Tensor::empty(shape.y())}),
                                      fastest_way(ConvPass::backward_input, {result, weight, grad_y}),
                                      fastest_way(ConvPass::backward_weight, {sides.x, Tensor::empty(shape.weight()), grad_y})},
                                     result));
  return direct;
}

// The three convolutions that the layer is, each alone.
struct Part {
  std::string name;
  std::shared_ptr<Module> layer;
  Shape input;
};

std::vector<Part> parts_of(const ConvShape& shape, Tucker2Ranks ranks) {
  const Shape pixels{shape.n, shape.size, shape.size};
  return {{"1x1 in", conv_layer(shape.in, ranks.in, 1), pixels.append(shape.in)},
          {"core", conv_layer(ranks.in, ranks.out, shape.kernel), pixels.append(ranks.in)},
          {"1x1 out", conv_layer(ranks.out, shape.out, 1), pixels.append(ranks.out)}};
}

double flops_of(const Module& layer, const Shape& input, Phase phase) {
  const double passes = phase == Phase::inference ? 1 : 3;
  return 2 * passes * static_cast<double>(input[0] * total_cost(layer, input).macs);
}

Value timed(const std::string& name, const Samples& samples, double flops) {
  Value row = Value::map();
  row.set("name", name);
  row.set("ms", to_value(summarise(samples)));
  row.set("gflops", flops / quantile(samples, 0.5) * 1e-6);
  return row;
}

Value describe(const TuckerSides& sides, Phase phase) {
  Value row = Value::map();
  row.set("shape", to_string(sides.shape));
  row.set("rank_out", sides.ranks.out);
  row.set("rank_in", sides.ranks.in);
  row.set("phase", phase == Phase::inference ? "forward" : "training");
  row.set("weights", phase == Phase::inference ? "constant" : "changing");
  return row;
}

Value part_rows(const std::vector<Part>& parts, std::span<const Samples> samples, Phase phase) {
  Value::List rows;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    rows.push_back(timed(parts[i].name, samples[i], flops_of(*parts[i].layer, parts[i].input, phase)));
  }
  return Value::list(std::move(rows));
}

}  // namespace

TuckerSides make_sides(const ConvShape& shape, Tucker2Ranks ranks) {
  const std::int64_t padding = shape.padding();
  auto tucker = std::make_shared<Tucker2Conv2d>(Tucker2Conv2dConfig{.in = shape.in,
                                                                    .out = shape.out,
                                                                    .kernel = {shape.kernel, shape.kernel},
                                                                    .padding = {padding, padding},
                                                                    .rank_in = ranks.in,
                                                                    .rank_out = ranks.out,
                                                                    .bias = false});
  tucker->reset_parameters(1);
  auto dense = conv_layer(shape.in, shape.out, shape.kernel);
  dense->weight().set_value(tucker->dense_weight().contiguous());
  return {shape, ranks, tucker, dense, random_tensor(shape.x(), "x")};
}

Value measure_phase(const TuckerSides& sides, Phase phase, const TurnOptions& turns) {
  const DecisionScope decisions({.measure = true});
  std::optional<ConstantWeights> constant;
  if (phase == Phase::inference) constant.emplace();
  const DirectCalls direct = direct_calls(sides, phase, conv_rivals);
  const DirectCalls blocked = direct_calls(sides, phase, blocked_conv_rivals);
  const std::vector<Part> parts = parts_of(sides.shape, sides.ranks);
  std::vector<Contestant> all{layer_side("tucker2", sides.tucker, sides.x, phase),
                              layer_side("tessera, dense", sides.dense, sides.x, phase)};
  all.insert(all.end(), direct.sides.begin(), direct.sides.end());
  check_agreement(all, direct.spoil, kAgreement);
  const std::size_t first_blocked = all.size();
  all.insert(all.end(), blocked.sides.begin(), blocked.sides.end());
  const std::size_t first_part = all.size();
  for (const Part& part : parts) all.push_back(layer_side(part.name, part.layer, random_tensor(part.input, "x"), phase));

  const std::vector<Samples> samples = time_in_turns(all, turns);
  const std::span<const Samples> spans(samples);
  const std::size_t rival = 1 + fastest(spans.subspan(1, first_blocked - 1));
  const std::size_t other = rival == 1 ? 2 + fastest(spans.subspan(2, first_blocked - 2)) : 1;
  const std::size_t best_blocked = first_blocked + fastest(spans.subspan(first_blocked, first_part - first_blocked));
  const double flops = flops_of(*sides.tucker, sides.shape.x(), phase);
  const double dense_flops = flops_of(*sides.dense, sides.shape.x(), phase);
  Value row = describe(sides, phase);
  row.set("rounds", turns.rounds);
  row.set("tucker", timed(all[0].name, samples[0], flops));
  row.set("rival", timed(all[rival].name, samples[rival], dense_flops));
  row.set("other_dense", timed(all[other].name, samples[other], dense_flops));
  row.set("ratio", to_value(summarise(ratios(samples[rival], samples[0]))));
  row.set("flop_ratio", dense_flops / flops);
  row.set("blocked_dense", timed(all[best_blocked].name, samples[best_blocked], dense_flops));
  row.set("blocked_ratio", to_value(summarise(ratios(samples[best_blocked], samples[0]))));
  row.set("parts", part_rows(parts, spans.subspan(first_part), phase));
  row.set("decisions", tessera::to_value(decisions.taken()).at("decisions"));
  return row;
}

}  // namespace tessera::bench
