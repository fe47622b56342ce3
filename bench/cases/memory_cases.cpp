#include "bench/cases/memory_cases.h"

#include <memory>

#include "bench/cases/dense_cases.h"
#include "bench/result_lines.h"
#include "core/autograd/backward.h"
#include "core/device/step_state.h"
#include "core/nn/parameter.h"
#include "core/ops/batch_norm.h"
#include "core/ops/cross_entropy.h"
#include "core/ops/gelu.h"
#include "core/ops/layer_norm.h"
#include "core/ops/relu.h"
#include "core/ops/rms_norm.h"
#include "core/ops/rotary.h"
#include "core/ops/softmax.h"
#include "core/ops/swiglu.h"
#include "core/ops/view.h"
#include "core/support/error.h"
#include "optim/adamw.h"
#include "optim/sgd.h"

namespace tessera::bench {
namespace {

// What an op must move, in arrays of x's size (of half of it if the result has half the columns). A batch norm must walk x twice,
// because a channel's mean is known only after the whole batch. The rows of the other ops stay in a cache.
struct Traffics {
  Traffic forward;
  Traffic backward;
};

constexpr Traffics kElementwise{{.reads = 1, .writes = 1}, {.reads = 2, .writes = 1}};

struct UnaryOp {
  std::string name;
  std::int64_t columns;
  Traffics traffic;
  std::function<Var(const Var&)> apply;
  Device device = {};
  bool loss = false;  // the result is one number
  int parts = 1;  // x is this many arrays, as the traffic counts them

  double array_bytes(const Shape& x) const { return static_cast<double>(x.numel() / parts) * sizeof(float); }
};

Shape shape_of(std::int64_t megabytes, std::int64_t columns) { return {(megabytes << 18) / columns, columns}; }

MemoryCase forward_case(const UnaryOp& op, std::int64_t megabytes) {
  const Shape shape = shape_of(megabytes, op.columns);
  const auto run = [apply = op.apply, x = Var(random_tensor(shape, "x", DType::f32, op.device))] {
    const NoGrad no_grad;
    apply(x);
  };
  return {op.name, "forward", str(shape), op.traffic.forward, op.array_bytes(shape), {"tessera", run}};
}

Shape result_shape(const UnaryOp& op, const Var& x) {
  const NoGrad no_grad;
  return op.apply(x).shape();
}

MemoryCase backward_case(const UnaryOp& op, std::int64_t megabytes) {
  const Shape shape = shape_of(megabytes, op.columns);
  const Var x(random_tensor(shape, "x", DType::f32, op.device), true);
  const Tensor grad_y = op.loss ? Tensor() : random_tensor(result_shape(op, x), "grad_y", DType::f32, op.device);
  const auto y = std::make_shared<Var>();
  const auto prepare = [=, apply = op.apply] {
    x.set_grad({});
    *y = apply(x);
  };
  const Contestant ours{"tessera", [=] { backward(*y, grad_y); }, prepare};
  return {op.name, "backward", str(shape), op.traffic.backward, op.array_bytes(shape), ours};
}

UnaryOp batch_norm_op(std::int64_t channels, Device device) {
  const Var gamma(random_tensor({channels}, "gamma", DType::f32, device), true);
  const Var beta(random_tensor({channels}, "beta", DType::f32, device), true);
  const Tensor mean = Tensor::zeros({channels}, DType::f32, device);
  const Tensor var = Tensor::zeros({channels}, DType::f32, device);
  const auto apply = [=](const Var& x) { return batch_norm(x, gamma, beta, mean, var, {.training = true}); };
  return {str("batch_norm c", channels), channels, {{.reads = 2, .writes = 1}, {.reads = 4, .writes = 1}}, apply, device};
}

UnaryOp layer_norm_op(std::int64_t columns, Device device) {
  const Var gamma(random_tensor({columns}, "gamma", DType::f32, device), true);
  const Var beta(random_tensor({columns}, "beta", DType::f32, device), true);
  return {"layer_norm", columns, kElementwise, [=](const Var& x) { return layer_norm(x, gamma, beta); }, device};
}

UnaryOp rms_norm_op(std::int64_t columns, Device device) {
  const Var gamma(random_tensor({columns}, "gamma", DType::f32, device), true);
  return {"rms_norm", columns, kElementwise, [=](const Var& x) { return rms_norm(x, gamma, 1e-5); }, device};
}

// As many positions in a sequence as a MiB has rows.
UnaryOp rotary_op(std::int64_t heads, std::int64_t width, Device device) {
  const std::int64_t columns = heads * width, positions = (1 << 18) / columns;
  const auto apply = [=](const Var& x) {
    return rotary(reshape(x, {x.shape()[0] / positions, positions, heads, width}), {.heads = heads});
  };
  return {"rotary", columns, {{.reads = 1, .writes = 1}, {.reads = 1, .writes = 1}}, apply, device};
}

UnaryOp cross_entropy_op(std::int64_t megabytes, std::int64_t classes, Device device) {
  const Shape shape = shape_of(megabytes, classes);
  const Tensor labels = Tensor::zeros({shape[0]}, DType::i64);
  for (std::int64_t i = 0; i < shape[0]; ++i) labels.data<std::int64_t>()[i] = i % classes;
  const auto apply = [labels = labels.to(device)](const Var& x) { return cross_entropy(x, labels); };
  return {str("cross_entropy c", classes), classes, {{.reads = 1}, {.reads = 1, .writes = 1}}, apply, device, true};
}

std::vector<UnaryOp> unary_ops(std::int64_t megabytes, Device device) {
  return {{"relu", 512, kElementwise, relu, device},
          {"gelu", 512, kElementwise, [](const Var& x) { return gelu(x); }, device},
          {"softmax", 256, kElementwise, softmax, device},
          layer_norm_op(512, device),
          rms_norm_op(512, device),
          {"swiglu", 1024, {{.reads = 2, .writes = 1}, {.reads = 3, .writes = 2}}, swiglu, device, false, 2},
          rotary_op(32, 64, device),
          batch_norm_op(16, device),
          batch_norm_op(64, device),
          batch_norm_op(256, device),
          cross_entropy_op(megabytes, 1000, device),
          cross_entropy_op(megabytes, 50257, device)};
}

// One parameter with all elements: the gradient is read, the weight and the state are updated.
template <class Rule, class Config>
MemoryCase optimizer_case(const Config& config, int states, std::int64_t megabytes, Device device) {
  const Shape shape = shape_of(megabytes, 1);
  const auto weight =
      std::make_shared<Parameter>("weight", random_tensor(shape, "weight", DType::f32, device), ParameterRole::weight);
  weight->set_grad(random_tensor(shape, "grad", DType::f32, device));
  const auto rule = std::make_shared<Rule>(config, std::vector<NamedParameter>{{"weight", weight.get()}});
  const auto state = std::make_shared<StepState>(device);
  const auto run = [weight, rule, state] { rule->step(*state); };
  state->set({.lr = 1e-6});
  const double bytes = static_cast<double>(shape.numel()) * sizeof(float);
  return {Config::kName, "step", str(shape), {.reads = 1, .updates = 1 + states}, bytes, {"tessera", run}};
}

}  // namespace

std::vector<MemoryMaker> memory_cases(std::int64_t megabytes, Device device) {
  std::vector<MemoryMaker> makers;
  for (const UnaryOp& op : unary_ops(megabytes, device)) {
    const std::string shape = str(shape_of(megabytes, op.columns));
    makers.push_back({op.name, shape, [=] { return forward_case(op, megabytes); }});
    makers.push_back({op.name, shape, [=] { return backward_case(op, megabytes); }});
  }
  const std::string shape = str(shape_of(megabytes, 1));
  const SgdConfig sgd{.weight_decay = 5e-4};
  makers.push_back({SgdConfig::kName, shape, [=] { return optimizer_case<Sgd>(sgd, 1, megabytes, device); }});
  makers.push_back({AdamWConfig::kName, shape, [=] { return optimizer_case<AdamW>(AdamWConfig{}, 2, megabytes, device); }});
  return makers;
}

Value measure_memory(const MemoryCase& memory, std::int64_t megabytes, const TurnOptions& turns) {
  const std::vector<StreamSide> streams = stream_sides(megabytes, turns.device, !memory.copies);
  const std::vector<StreamSide> same =
      turns.device.is_cuda() ? std::vector<StreamSide>() : traffic_sides(memory.traffic, memory.array_bytes);
  std::vector<Contestant> sides{memory.ours};
  for (const StreamSide& side : streams) sides.push_back(side.contestant);
  for (const StreamSide& side : same) sides.push_back(side.contestant);
  const std::vector<Samples> samples = time_in_turns(sides, turns);
  const std::span others = std::span(samples).subspan(1);
  const std::vector<double> ours = rates(memory.bytes(), samples[0]);
  const Streaming stream = fastest_stream(streams, others.first(streams.size()));
  Value row = Value::map();
  row.set("op", memory.op);
  row.set("shape", memory.shape);
  row.set("pass", memory.pass);
  row.set("rounds", turns.rounds);
  row.set("tessera_ms", to_value(samples[0]));
  row.set("bytes", memory.bytes());
  row.set("gbytes_per_second", quantile(ours, 0.5));
  row.set("stream", stream.name);
  row.set("stream_ms", to_value(stream.ms));
  row.set("stream_gbytes_per_second", quantile(stream.gbytes_per_second, 0.5));
  row.set("ratio", ratio_value(ours, stream.gbytes_per_second));
  if (!same.empty()) {
    const Streaming like_ours = fastest_stream(same, others.subspan(streams.size()));
    row.set("traffic_ms", to_value(like_ours.ms));
    row.set("share_of_same_traffic", ratio_value(ours, like_ours.gbytes_per_second));
  }
  return row;
}

}  // namespace tessera::bench
