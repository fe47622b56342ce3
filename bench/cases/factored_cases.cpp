#include "bench/cases/factored_cases.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <optional>

#include "bench/cases/dense_cases.h"
#include "bench/result_lines.h"
#include "compress/formats/builtin.h"
#include "core/autograd/backward.h"
#include "core/config/read.h"
#include "core/device/constant_weights.h"
#include "core/device/decisions.h"
#include "core/support/counting.h"
#include "core/support/error.h"
#include "layers/compressed.h"
#include "layers/factored_conv2d.h"
#include "layers/linear.h"
#include "layers/tt_conv2d.h"
#include "layers/tt_linear.h"
#include "train/run/decisions_file.h"

namespace tessera::bench {
namespace {

constexpr double kAgreement = 1e-3;  // of the largest value: several convolutions against one, Winograd among them
constexpr double kBf16Agreement = 1e-2;  // operands and results have eight significant bits
constexpr TurnOptions kSweepTurns{.rounds = 15, .seconds = 2e-3};

// For inference: one side per way. For training: one side, which runs the fastest way of each pass (found by a sweep) in turn.
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

void spoil(const Tensor& result) { result.fill(std::numeric_limits<double>::quiet_NaN()); }

// The operands of a layer.
struct Operands {
  Tensor x, weight;
};

template <class Ways>
DirectCalls conv_calls(const Operands& of, const ConvShape& shape, Phase phase, const Ways& ways) {
  const auto& [x, weight] = of;
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
  DirectCalls direct{{}, [result] { spoil(result); }};
  if (phase == Phase::inference) {
    for (const Contestant& way : all_ways(ConvPass::forward, {x, weight, result})) {
      direct.sides.push_back(in_sequence({way}, result));
    }
    return direct;
  }
  const Tensor grad_y = random_tensor(shape.y(), "grad_y");
  direct.sides.push_back(in_sequence({fastest_way(ConvPass::forward, {x, weight, Tensor::empty(shape.y())}),
                                      fastest_way(ConvPass::backward_input, {result, weight, grad_y}),
                                      fastest_way(ConvPass::backward_weight, {x, Tensor::empty(shape.weight()), grad_y})},
                                     result));
  return direct;
}

DirectCalls product_calls(const Operands& of, const LinearShape& shape, Phase phase) {
  const auto& [x, weight] = of;
  const auto [rows, in, out] = shape;
  const Tensor result = Tensor::empty(phase == Phase::inference ? Shape{rows, out} : Shape{rows, in});
  DirectCalls direct{{}, [result] { spoil(result); }};
  const Product forward{{rows, out, in}, x, weight, phase == Phase::inference ? result : Tensor::empty({rows, out}), false, true};
  if (phase == Phase::inference) {
    for (const auto& ways : {product_rivals(forward), packed_product_rivals(forward)}) {
      for (const Contestant& way : ways) direct.sides.push_back(in_sequence({way}, result));
    }
    return direct;
  }
  const auto fastest_way = [](const Product& product) { return sweep(product_rivals(product), kSweepTurns).finalists.front(); };
  const Tensor grad_y = random_tensor({rows, out}, "grad_y");
  direct.sides.push_back(in_sequence({fastest_way(forward), fastest_way({{rows, in, out}, grad_y, weight, result}),
                                      fastest_way({{out, in, rows}, grad_y, x, Tensor::empty({out, in}), true, false})},
                                     result));
  return direct;
}

double passes_in(Phase phase) { return phase == Phase::inference ? 1 : 3; }

// Samples are the rows of a linear layer's input, or the images of a convolution's input.
double flops_of(const Module& layer, const Shape& input, Phase phase) {
  return 2 * passes_in(phase) * static_cast<double>(input[0] * total_cost(layer, input).macs);
}

Value timed_rate(const std::string& name, const Samples& samples, double flops) {
  Value row = timed(name, samples);
  row.set("gflops", flops / samples.median() * 1e-6);
  return row;
}

// For formats whose steps are layers of ours: one part per step.
std::vector<Part> layer_parts(const FactoredSides& sides, Phase phase) {
  std::vector<Part> parts;
  Shape input = sides.x.shape();
  const auto add = [&](const std::string& name, std::shared_ptr<Module> layer) {
    layer->reset_parameters(1);
    const double flops = flops_of(*layer, input, phase);
    parts.push_back({layer_side(name, layer, random_tensor(input, "x"), phase), flops});
    input = layer->output_shape(input);
  };
  if (const auto* chain = dynamic_cast<const FactoredConv2d*>(sides.factored.get())) {
    for (const FactoredConv2d::Filter& filter : chain->filters()) {
      const Shape& shape = filter.parameter->value().shape();
      const Conv2dOptions& options = filter.options;
      add(filter.parameter->name(), std::make_shared<Conv2d>(Conv2dConfig{.in = shape[3] * options.groups,
                                                                          .out = shape[0],
                                                                          .kernel = {shape[1], shape[2]},
                                                                          .stride = options.stride,
                                                                          .padding = options.padding,
                                                                          .dilation = options.dilation,
                                                                          .groups = options.groups,
                                                                          .bias = false}));
    }
  }
  if (sides.factored->kind() == "svd_linear") {
    for (const auto& factor : sides.factored->parameters()) {
      const Shape& shape = factor->value().shape();
      add(factor->name(), std::make_shared<Linear>(LinearConfig{.in = shape[1], .out = shape[0], .bias = false}));
    }
  }
  return parts;
}

// Makes a step from the fastest of the direct calls.
Part direct_part(const std::string& name, const DirectCalls& direct, double flops) {
  Contestant side = sweep(direct.sides, kSweepTurns).finalists.front();
  side.name = name + ", " + side.name;
  return {std::move(side), flops};
}

Part half_part(const std::string& order, const std::string& half, const LinearShape& shape, Phase phase) {
  Part part = product_part(str(order, ": ", half), shape, phase);
  part.order = order;
  return part;
}

// All steps of a train are inside one layer of ours, so oneDNN's calls give the floor, with operands in the layouts they prefer.
// The products of the cores, which involve weights only, are left out.
std::vector<Part> train_parts(const TtConv2dConfig& train, const ConvShape& shape, Phase phase) {
  const std::size_t p = train.out_modes.size();
  const std::int64_t r_out = train.ranks[p - 1], r_in = train.ranks[p];
  ConvShape in = shape, core = shape, out = shape;
  in.out = core.in = r_in;
  core.out = out.in = r_out;
  in.kernel = out.kernel = in.stride = out.stride = 1;
  out.size = core.out_size();
  return {conv_part("in", in, phase), conv_part("core", core, phase), conv_part("out", out, phase)};
}

// Both orders of the halves. The second product of each order is one product over all rows, not one product per row.
std::vector<Part> train_parts(const TtLinearConfig& train, std::int64_t rows, Phase phase) {
  const std::size_t left = tt_halves(train.out_modes, train.in_modes, train.ranks).left;
  const auto halves_of = [left](std::span<const std::int64_t> modes) {
    return std::pair{product_of(modes.first(left)), product_of(modes.subspan(left))};
  };
  const auto [o_left, o_right] = halves_of(train.out_modes);
  const auto [i_left, i_right] = halves_of(train.in_modes);
  const std::int64_t r = train.ranks[left - 1];
  return {half_part("right-first", "right", {rows * i_left, i_right, r * o_right}, phase),
          half_part("right-first", "left", {rows * o_right, i_left * r, o_left}, phase),
          half_part("left-first", "left", {rows * i_right, i_left, o_left * r}, phase),
          half_part("left-first", "right", {rows * o_left, r * i_right, o_right}, phase)};
}

std::vector<Part> parts_of(const FactoredSides& sides, Phase phase) {
  const Module& layer = *sides.factored;
  if (layer.kind() == "tt_conv2d") {
    return train_parts(read<TtConv2dConfig>(layer.config()), std::get<ConvShape>(sides.of.shape), phase);
  }
  if (layer.kind() == "tt_linear") {
    return train_parts(read<TtLinearConfig>(layer.config()), std::get<LinearShape>(sides.of.shape).rows, phase);
  }
  return layer_parts(sides, phase);
}

Value part_rows(const std::vector<Part>& parts, std::span<const Samples> samples) {
  Value::List rows;
  for (std::size_t i = 0; i < parts.size(); ++i) rows.push_back(timed_rate(parts[i].side.name, samples[i], parts[i].flops));
  return Value::list(std::move(rows));
}

// For each order, the sum of its steps, round by round.
Value floor_rows(const std::vector<Part>& parts, std::span<const Samples> samples) {
  Value::List rows;
  for (std::size_t first = 0, next = 0; first < parts.size(); first = next) {
    const std::string& order = parts[first].order;
    Samples sum{std::vector<double>(samples[first].rounds.size(), 0.0)};
    double flops = 0;
    for (; next < parts.size() && parts[next].order == order; ++next) {
      std::ranges::transform(sum.rounds, samples[next].rounds, sum.rounds.begin(), std::plus<>());
      flops += parts[next].flops;
    }
    rows.push_back(timed_rate(order.empty() ? "floor" : str("floor, ", order), sum, flops));
  }
  return Value::list(std::move(rows));
}

// `all` holds the compressed layer first, then the dense ones.
void set_sides(Value& row, std::span<const Contestant> all, std::span<const Samples> samples, double flops, double dense_flops) {
  const std::size_t rival = 1 + fastest(samples.subspan(1));
  const std::size_t other = rival == 1 ? 2 + fastest(samples.subspan(2)) : 1;
  row.set("factored", timed_rate(all[0].name, samples[0], flops));
  row.set("rival", timed_rate(all[rival].name, samples[rival], dense_flops));
  row.set("other_dense", timed_rate(all[other].name, samples[other], dense_flops));
  row.set("ratio", ratio_value(samples[rival], samples[0]));
  row.set("flop_ratio", dense_flops / flops);
}

std::shared_ptr<Module> dense_layer_of(const ConvShape& shape) {
  return std::make_shared<Conv2d>(Conv2dConfig{.in = shape.in,
                                               .out = shape.out,
                                               .kernel = {shape.kernel, shape.kernel},
                                               .stride = {shape.stride, shape.stride},
                                               .padding = {shape.padding(), shape.padding()},
                                               .bias = false});
}
std::shared_ptr<Module> dense_layer_of(const LinearShape& shape) {
  return std::make_shared<Linear>(LinearConfig{.in = shape.in, .out = shape.out, .bias = false});
}

Shape input_shape(const ConvShape& shape) { return shape.x(); }
Shape input_shape(const LinearShape& shape) { return {shape.rows, shape.in}; }

}  // namespace

std::string to_string(const LayerShape& shape) {
  return std::visit([](const auto& each) { return to_string(each); }, shape);
}

std::shared_ptr<Module> dense_of(const LayerShape& shape) {
  return std::visit([](const auto& each) { return dense_layer_of(each); }, shape);
}

Shape input_of(const LayerShape& shape) {
  return std::visit([](const auto& each) { return input_shape(each); }, shape);
}

std::string to_string(const LinearShape& shape) { return str(shape.rows, 'x', shape.in, " -> ", shape.out); }

Tensor gradient_of_output(const Module& layer, const Shape& input) { return random_tensor(layer.output_shape(input), "grad_y"); }

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
  const Tensor grad_y = gradient_of_output(*layer, input.shape()).to(input.dtype());
  const auto clear = [=] {
    x.set_grad({});
    for (const NamedParameter& named : named_parameters(*layer)) named.parameter->set_grad({});
  };
  return {std::move(name), [=] { backward(layer->forward(x, {}), grad_y); }, clear, [=] { return x.grad(); }};
}

Part conv_part(const std::string& name, const ConvShape& shape, Phase phase) {
  const auto every_way = [](ConvPass pass, const ConvShape& of, const ConvTensors& tensors, ConvUse use) {
    std::vector<Contestant> ways = conv_rivals(pass, of, tensors, use);
    for (Contestant& way : blocked_conv_rivals(pass, of, tensors, use)) ways.push_back(std::move(way));
    return ways;
  };
  const Operands operands{random_tensor(shape.x(), "x"), random_tensor(shape.weight(), "weight")};
  return direct_part(name, conv_calls(operands, shape, phase, every_way), shape.flops() * passes_in(phase));
}

Part product_part(const std::string& name, const LinearShape& shape, Phase phase) {
  const auto [rows, in, out] = shape;
  const Operands operands{random_tensor({rows, in}, "x"), random_tensor({out, in}, "weight")};
  return direct_part(name, product_calls(operands, shape, phase), ProductShape{rows, out, in}.flops() * passes_in(phase));
}

FactoredSides make_sides(const FactoredCase& of) {
  const std::shared_ptr<Module> dense = dense_of(of.shape);
  const Shape input = input_of(of.shape);
  Trace trace;
  dense->output_shape(input, &trace);
  const Format& named = format_named(of.format);
  const std::unique_ptr<Format> split = of.modes ? named.with_modes(*of.modes) : nullptr;
  const Format& format = split ? *split : named;
  std::shared_ptr<Module> factored = format.layer(dense_layer(*dense, trace.front()).value(), of.ranks);
  factored->reset_parameters(1);
  dense->parameter("weight").set_value(as_compressed(*factored)->dense_weight().contiguous());
  return {of, factored, dense, random_tensor(input, "x")};
}

Value describe_factored(const FactoredSides& sides, Phase phase) {
  Value row = Value::map();
  row.set("format", sides.of.format);
  row.set("shape", to_string(sides.of.shape));
  row.set("ranks", to_string(sides.of.ranks));
  row.set("phase", phase == Phase::inference ? "forward" : "training");
  row.set("weights", phase == Phase::inference ? "constant" : "changing");
  return row;
}

Value measure_pair(const LayerPair& sides, Value row, Phase phase, const TurnOptions& turns) {
  const DecisionScope decisions({.measure = true});
  std::optional<ConstantWeights> constant;
  if (phase == Phase::inference) constant.emplace();
  const auto* const conv = std::get_if<ConvShape>(&sides.shape);
  const Operands dense{sides.x, sides.dense->parameter("weight").value()};
  const DirectCalls direct =
      conv ? conv_calls(dense, *conv, phase, conv_rivals) : product_calls(dense, std::get<LinearShape>(sides.shape), phase);
  const DirectCalls blocked = conv ? conv_calls(dense, *conv, phase, blocked_conv_rivals) : DirectCalls{};
  const std::vector<Part> parts = sides.parts ? sides.parts(phase) : std::vector<Part>();
  const Tensor x = sides.x.to(sides.compute);
  std::vector<Contestant> all{layer_side(sides.name, sides.compressed, x, phase),
                              layer_side("tessera, dense", sides.dense, x, phase)};
  all.insert(all.end(), direct.sides.begin(), direct.sides.end());
  check_agreement(all, direct.spoil, sides.compute == DType::f32 ? kAgreement : kBf16Agreement);
  const std::size_t first_blocked = all.size();
  all.insert(all.end(), blocked.sides.begin(), blocked.sides.end());
  const std::size_t first_part = all.size();
  for (const Part& part : parts) all.push_back(part.side);
  const std::optional<Part> beside = sides.beside ? std::optional(sides.beside(phase)) : std::nullopt;
  if (beside) all.push_back(beside->side);

  const std::vector<Samples> samples = time_in_turns(all, turns);
  const std::span<const Samples> spans(samples);
  row.set("rounds", turns.rounds);
  const double flops = flops_of(*sides.compressed, sides.x.shape(), phase);
  const double dense_flops = flops_of(*sides.dense, sides.x.shape(), phase);
  set_sides(row, std::span(all).first(first_blocked), spans.first(first_blocked), flops, dense_flops);
  if (conv) {
    const std::size_t best = first_blocked + fastest(spans.subspan(first_blocked, first_part - first_blocked));
    row.set("blocked_dense", timed_rate(all[best].name, samples[best], dense_flops));
    row.set("blocked_ratio", ratio_value(samples[best], samples[0]));
  }
  const std::span<const Samples> of_parts = spans.subspan(first_part, parts.size());
  row.set("parts", part_rows(parts, of_parts));
  row.set("floors", floor_rows(parts, of_parts));
  if (beside) row.set("library_floor", timed_rate(beside->side.name, samples.back(), beside->flops));
  row.set("decisions", tessera::to_value(decisions.taken()).at("decisions"));
  return row;
}

Value measure_phase(const FactoredSides& sides, Phase phase, const TurnOptions& turns) {
  const auto parts = [&](Phase of) { return parts_of(sides, of); };
  return measure_pair({sides.of.format, sides.of.shape, sides.factored, sides.dense, sides.x, DType::f32, parts},
                      describe_factored(sides, phase), phase, turns);
}

}  // namespace tessera::bench
