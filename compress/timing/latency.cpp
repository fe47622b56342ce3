#include "compress/timing/latency.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

#include "core/autograd/backward.h"
#include "core/autograd/var.h"
#include "core/device/constant_weights.h"
#include "core/device/decisions.h"
#include "core/rng.h"
#include "core/support/error.h"
#include "core/support/log.h"

namespace tessera {
namespace {

constexpr int kWarmUp = 10;
constexpr int kWarmUpAgain = 2;  // for networks that have run before

Tensor random_batch(const Shape& shape, std::string_view purpose, const WorkOptions& options) {
  const Tensor batch = Tensor::empty(shape);
  fill_normal(batch, RngStream(0, "latency", purpose), 0.0, 1.0);
  return batch.to(options.device).to(options.compute);
}

Tensor random_input(const Module& module, const Shape& shape, const WorkOptions& options) {
  const std::int64_t limit = module.input_limit();
  if (limit == 0) return random_batch(shape, "input", options);
  const Tensor batch = Tensor::empty(shape, DType::i64);
  const RngStream stream(0, "latency", "input");
  std::int64_t* const values = batch.data<std::int64_t>();
  for (std::int64_t i = 0; i < batch.numel(); ++i) values[i] = random_below(stream, 0, static_cast<std::uint64_t>(i), limit);
  return batch.to(options.device);
}

Shape with_positions(Shape input, std::int64_t positions) {
  input.set(1, positions);
  return input;
}

}  // namespace

TimedWork::TimedWork(const Module& module, const Shape& input, const WorkOptions& options)
    : phase_(options.phase), compute_(options.compute), recompute_(options.recompute), step_(options.device) {
  Shape read = input;
  if (phase_ == Phase::decode) {
    TESSERA_CHECK(input.rank() >= 2 && input[1] >= 1, ShapeError, "decode: input is ", input, "; needs [n, positions, ...]");
    length_ = input[1];
    read = with_positions(input, 1);
    if (length_ > 1) in_front_ = random_input(module, with_positions(input, length_ - 1), options);
  }
  x_ = random_input(module, read, options);
  input_gradient_ = options.input_gradient && is_floating(x_.dtype());
  if (phase_ == Phase::training) grad_y_ = random_batch(module.output_shape(input), "gradient", options);
}

void TimedWork::run(Module& module) const {
  if (phase_ == Phase::training) return run_training(module);
  run_inference(module, phase_ == Phase::decode ? &cache_of(module) : nullptr);
}

void TimedWork::run_inference(Module& module, AttentionCache* cache) const {
  const NoGrad no_grad;
  module(Var(x_), Context{.compute = compute_, .cache = cache});
}

void TimedWork::run_training(Module& module) const {
  const Context context{.training = true, .seed = 0, .step = &step_, .recompute = recompute_, .inputs = {}, .compute = compute_};
  const Var y = module(Var(x_, input_gradient_), context);
  if (y.requires_grad()) backward(y, grad_y_);
}

AttentionCache& TimedWork::cache_of(Module& module) const {
  if (const auto found = caches_.find(&module); found != caches_.end()) return found->second;
  AttentionCache cache(length_);
  if (in_front_.defined()) {
    const NoGrad no_grad;
    const DecisionScope fixed({});
    module(Var(in_front_), Context{.compute = compute_, .cache = &cache});
    cache.advance(length_ - 1);
  }
  return caches_.emplace(&module, std::move(cache)).first->second;
}

Untouched::Untouched(Module& module) : module_(module) {
  for (const NamedBuffer& buffer : named_buffers(module)) buffers_.push_back(buffer.buffer->value.clone());
}

// A failed device cannot restore buffers. The exception of its failure is already being thrown.
Untouched::~Untouched() {
  try {
    auto saved = buffers_.begin();
    for (const NamedBuffer& buffer : named_buffers(module_)) buffer.buffer->value.copy_from(*saved++);
  } catch (const DeviceError& error) {
    log_warning(str("timing: buffers are not as they were before it: ", error.what()));
  }
  for (const NamedParameter& parameter : named_parameters(module_)) parameter.parameter->zero_grad();
}

PairedTiming time_networks(std::span<Module* const> networks, const Shape& input, std::int64_t repeats,
                           const WorkOptions& options) {
  const TimedWork work(*networks.front(), input, options);
  std::optional<ConstantWeights> constant;
  if (options.phase != Phase::training) constant.emplace();
  std::vector<std::unique_ptr<Untouched>> states;
  std::vector<Contender> contenders;
  for (Module* network : networks) {
    if (options.phase == Phase::training) states.push_back(std::make_unique<Untouched>(*network));
    contenders.push_back({.run = [&work, network] { work.run(*network); }});
  }
  PairedTiming result;
  Disturbance disturbance;
  int warm_up = kWarmUp;
  if (contenders.size() > 1) {
    const Turns alone{.device = options.device, .warm_up = kWarmUp, .rounds = std::min(kRunsAlone, repeats)};
    for (const Contender& contender : contenders) {
      const Timings timings = time_in_turn(std::span(&contender, 1), alone);
      result.alone.push_back(quantile(timings.ms.front(), 0.5));
      disturbance += timings.disturbance;
    }
    warm_up = kWarmUpAgain;
  }
  const Timings timings = time_in_turn(contenders, {.device = options.device, .warm_up = warm_up, .rounds = repeats});
  disturbance += timings.disturbance;
  warn_of(disturbance, contenders.size() == 1 ? "the network" : "the networks");
  result.replayed = timings.replayed;
  for (const std::vector<double>& samples : timings.ms) {
    std::vector<double> ratios(samples.size());
    for (std::size_t round = 0; round < samples.size(); ++round) ratios[round] = timings.ms[0][round] / samples[round];
    result.networks.push_back(summarise(samples));
    result.speedup.push_back(summarise(ratios));
  }
  if (contenders.size() == 1) result.alone.push_back(result.networks.front().median);
  return result;
}

}  // namespace tessera
