#include "compress/latency.h"

#include <chrono>

#include "core/autograd/backward.h"
#include "core/autograd/var.h"
#include "core/constant_weights.h"
#include "core/error.h"
#include "core/rng.h"

namespace tessera {
namespace {

constexpr int kWarmUp = 10;

double time_once(const Contender& contender) {
  using Clock = std::chrono::steady_clock;
  if (contender.prepare) contender.prepare();
  const auto start = Clock::now();
  contender.run();
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

Tensor random_batch(const Shape& shape, std::string_view purpose, DType dtype) {
  const Tensor batch = Tensor::empty(shape);
  fill_normal(batch, RngStream(0, "latency", purpose), 0.0, 1.0);
  return batch.to(dtype);
}

}  // namespace

std::string_view name_of(Phase phase) { return phase == Phase::training ? "training" : "inference"; }

std::string where_timed(std::int64_t batch, Phase phase, std::int64_t threads, bool folded, DType compute) {
  return str("batch ", batch, ", ", folded ? "folded " : "", name_of(phase), ", ", threads, " threads",
             compute == DType::f32 ? std::string() : str(", ", compute));
}

std::vector<std::vector<double>> time_in_turn(std::span<const Contender> contenders, int warm_up, std::int64_t rounds) {
  for (int round = 0; round < warm_up; ++round) {
    for (const Contender& contender : contenders) time_once(contender);
  }
  std::vector<std::vector<double>> times(contenders.size());
  for (std::int64_t round = 0; round < rounds; ++round) {
    for (std::size_t i = 0; i < contenders.size(); ++i) times[i].push_back(time_once(contenders[i]));
  }
  return times;
}

TimedWork::TimedWork(const Module& module, const Shape& input, Phase phase, bool input_gradient, DType compute)
    : x_(random_batch(input, "input", compute)), input_gradient_(input_gradient) {
  if (phase == Phase::training) grad_y_ = random_batch(module.output_shape(input), "gradient", compute);
}

void TimedWork::run(Module& module) const {
  if (!grad_y_.defined()) {
    const NoGrad no_grad;
    module(Var(x_), Context{});
    return;
  }
  const Var y = module(Var(x_, input_gradient_), Context{.training = true, .seed = 0, .step = &step_});
  if (y.requires_grad()) backward(y, grad_y_);
}

Untouched::Untouched(Module& module) : module_(module) {
  for (const NamedBuffer& buffer : named_buffers(module)) buffers_.push_back(buffer.buffer->value.clone());
}

Untouched::~Untouched() {
  auto saved = buffers_.begin();
  for (const NamedBuffer& buffer : named_buffers(module_)) buffer.buffer->value.copy_from(*saved++);
  for (const NamedParameter& parameter : named_parameters(module_)) parameter.parameter->zero_grad();
}

PairedTiming time_networks(std::span<Module* const> networks, const Shape& input, std::int64_t repeats, DType compute) {
  const TimedWork work(*networks.front(), input, Phase::inference, false, compute);
  const ConstantWeights constant;
  std::vector<Contender> contenders;
  for (Module* network : networks) contenders.push_back({.run = [&work, network] { work.run(*network); }});
  const std::vector<std::vector<double>> times = time_in_turn(contenders, kWarmUp, repeats);
  PairedTiming result;
  for (const std::vector<double>& samples : times) {
    std::vector<double> ratios(samples.size());
    for (std::size_t round = 0; round < samples.size(); ++round) ratios[round] = times[0][round] / samples[round];
    result.networks.push_back(summarise(samples));
    result.speedup.push_back(summarise(ratios));
  }
  return result;
}

}  // namespace tessera
