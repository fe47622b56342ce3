#include "train/run/stage_trainer.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <iterator>
#include <optional>

#include "core/autograd/accumulate.h"
#include "core/autograd/backward.h"
#include "core/autograd/numeric_check.h"
#include "core/comm/shared_statistics.h"
#include "core/finite.h"
#include "core/ops/arithmetic.h"
#include "core/ops/where.h"
#include "core/support/error.h"
#include "core/support/profile.h"
#include "layers/scores.h"
#include "optim/grad_clip.h"
#include "optim/loss_scale.h"
#include "train/run/step_check.h"

namespace tessera {
namespace {

constexpr const char* kPowerSgdPart = "power_sgd";
constexpr const char* kAdvice = "lower the learning rate, add warmup, or clip gradients with clip_norm";

// Leaves out the sign of a NaN, which means nothing.
std::string spelled(double value) { return std::isnan(value) ? std::string("nan") : str(value); }

}  // namespace

StageTrainer::StageTrainer(Module& model, const TrainingConfig& config, const Task& task, std::uint64_t seed,
                           std::int64_t steps_per_epoch, std::int64_t total_steps, DType compute,
                           std::span<const MakeHook> others, Communicator& ranks)
    : model_(model),
      config_(config),
      task_(task),
      ranks_(ranks),
      seed_(seed),
      compute_(compute),
      scales_loss_(compute == DType::f16),
      length_{.steps = total_steps, .steps_per_epoch = steps_per_epoch},
      parameters_(named_parameters(model)),
      buffers_(named_buffers(model)),
      step_state_(device_of(model)),
      optimizer_(make_optimizer(config.optimizer, parameters_)),
      loss_sum_(Tensor::zeros({}, DType::f64, step_state_.tensor().device())),
      norm_sum_(Tensor::zeros({}, DType::f64, step_state_.tensor().device())) {
  const HookSetting setting{.model = model_,
                            .length = length_,
                            .slots = slots_,
                            .seed = seed_,
                            .with_gradients = [this](const Batch& batch, const auto& body) { with_gradients(batch, body); },
                            .ranks = ranks_};
  for (const MakeHook& make : training_hooks(config_)) hooks_.push_back(make(setting));
  for (const MakeHook& make : others) hooks_.push_back(make(setting));
  if (scales_loss_) step_state_.load(kInitialLossScale, 0);
  const bool on_host = std::ranges::any_of(hooks_, [](const auto& hook) { return hook->acts_on_host(); });
  std::unique_ptr<PowerSgd> power;
  if (config_.power_sgd) power = std::make_unique<PowerSgd>(*config_.power_sgd, ranks_, parameters_, seed_);
  if (power || ranks_.size() > 1) exchange_ = std::make_unique<GradientExchange>(ranks_, parameters_, std::move(power));
  const bool needs_gradients = std::ranges::any_of(hooks_, [](const auto& hook) { return hook->needs_gradients(); });
  if (!needs_gradients && !exchange_ && !config_.clip_norm && !scales_loss_ && device_of(model).is_cpu()) {
    early_ = std::make_unique<EarlyUpdates>(parameters_, [this](std::span<Parameter* const> some) { update_early(some); });
  }
  if (!on_host && !exchange_) graph_ = StepGraph(step_recorder(step_state_.tensor().device()));
}

Var StageTrainer::loss(const Batch& batch, const Context& context) const {
  const Var output = scores(model_, batch.parts(), context, compute_);
  try {
    Var value = task_.loss(output, batch, config_.loss);
    for (const auto& hook : hooks_) value = hook->loss(value, output, batch.parts());
    return value;
  } catch (const OutOfMemoryError& error) {
    throw error.at("loss, forward");
  }
}

StageTrainer::Portion StageTrainer::share_of_rank(const Batch& batch) const {
  const std::int64_t share = batch.samples();
  const std::int64_t micro = std::min(config_.micro_batch.value_or(share), share);
  return {.samples = share * ranks_.size(),
          .first_micro = ranks_.rank() * ((share + micro - 1) / micro),
          .micro = micro,
          .done = leaf_done()};
}

// While NumericCheck is active, nothing is updated early: it checks all gradients before any weight changes.
LeafDone StageTrainer::leaf_done() const {
  if (exchange_) return exchange_->send();
  return early_ && !NumericCheck::active() ? early_->take() : LeafDone();
}

// The portion for one process that computes the samples of all ranks, in micro-batches of the size that a rank takes.
StageTrainer::Portion StageTrainer::whole(const Batch& batch) const {
  const std::int64_t share = std::max<std::int64_t>(1, batch.samples() / ranks_.size());
  const std::int64_t together = config_.sync_batch_norm.value_or(false) ? ranks_.size() : 1;  // ranks that a norm sees at once
  return {.samples = batch.samples(), .micro = std::min(config_.micro_batch.value_or(share), share) * together};
}

void StageTrainer::accumulate_gradients(const Batch& batch, const Context& context, const Portion& portion) {
  const std::int64_t samples = batch.samples();
  losses_.clear();
  for (std::int64_t begin = 0; begin < samples; begin += portion.micro) {
    const std::int64_t end = std::min(begin + portion.micro, samples);
    const double share = static_cast<double>(end - begin) / static_cast<double>(portion.samples);
    const std::int64_t index = portion.first_micro + begin / portion.micro;
    if (index > 0) step_state_.set_micro_step(index);
    const Batch part = batch.slice(begin, end);  // kept until backward is done: layers may read it again
    Var value = loss(part, context);
    if (end - begin != portion.samples) value = mul_scalar(value, share);
    if (samples == portion.samples) {
      accumulate(loss_sum_, value.value().to(DType::f64));
    } else {
      losses_.push_back(value.value().to(DType::f64));
    }
    charge_profile(ProfilePart::metrics, "loss");
    const NumericCheckPause pause(may_overflow());
    const bool last = end == samples;
    backward(scales_loss_ ? scaled_by_loss_scale(value, step_state_) : value, {}, last ? portion.done : LeafDone());
  }
}

void StageTrainer::exchange() {
  exchange_->finish();
  if (ranks_.size() == 1) return;
  average_statistics(ranks_, buffers_);
  charge_profile(ProfilePart::exchange, "statistics");
  for (const Tensor& loss : all_losses(ranks_, losses_)) accumulate(loss_sum_, loss.to(loss_sum_.device()));
  charge_profile(ProfilePart::exchange, "losses");
}

// A loss scale above 1 is lowered until the gradients do not overflow. At 1 or below, the gradients overflow by themselves.
bool StageTrainer::may_overflow() const { return scales_loss_ && NumericCheck::active() && step_state_.read().loss_scale > 1; }

void StageTrainer::step(const Batch& batch, std::int64_t stage_step, std::int64_t global_step) {
  check_device(batch);
  publish(stage_step, global_step);
  const StepGraph::Work work{.run = [this](const Batch& inputs) { compute_step(inputs); },
                             .abandon = [this] { drop_gradients(); }};
  try {
    graph_.run(batch, memory(), work);
  } catch (...) {
    drop_gradients();  // the next step must not add to them
    throw;
  }
  ++loss_count_;
}

void StageTrainer::check_device(const Batch& batch) const {
  const Device device = step_state_.tensor().device();
  TESSERA_CHECK(batch.device() == device, InternalError, "training: the batch is on ", batch.device().name(), ", the model on ",
                device.name(), "; loaders bring batches to the device");
}

Context StageTrainer::context() const {
  return {.training = true, .seed = seed_, .step = &step_state_, .recompute = config_.recompute};
}

void StageTrainer::with_gradients(const Batch& batch, const std::function<void()>& body) {
  check_device(batch);
  std::vector<Tensor> buffers;
  for (const NamedBuffer& entry : buffers_) buffers.push_back(entry.buffer->value.clone());
  const Tensor loss_sum = loss_sum_.clone();
  const StepStateData before = scales_loss_ ? step_state_.read() : StepStateData();
  const bool finite = unscaled_gradients(batch);
  if (scales_loss_) step_state_.load(before.loss_scale, before.good_steps);
  for (std::size_t i = 0; i < buffers.size(); ++i) buffers_[i].buffer->value.copy_from(buffers[i]);
  loss_sum_.copy_from(loss_sum);
  if (finite) body();
  drop_gradients();
}

// Returns whether the gradients are finite at some loss scale. It tries the one that training has found so far first.
bool StageTrainer::unscaled_gradients(const Batch& batch) {
  constexpr double kLower = 0x1p-4;  // coarse, for few tries: what f16 underflows is small next to the largest scores
  for (;;) {
    step_state_.set_micro_step(0);
    accumulate_gradients(batch, context(), whole(batch));
    if (!scales_loss_) return true;
    unscale_gradients(parameters_, step_state_);
    const StepStateData state = step_state_.read();
    if (state.skip == 0) return true;
    if (state.loss_scale <= kSmallestLossScale) return false;
    drop_gradients();
    step_state_.load(std::max(kSmallestLossScale, state.loss_scale * kLower), state.good_steps);
  }
}

void StageTrainer::publish(std::int64_t stage_step, std::int64_t global_step) {
  StepStateData state;
  state.step = global_step;
  state.lr = scheduled_lr(config_.schedule, config_.optimizer.lr(), stage_step, length_);
  for (const auto& hook : hooks_) hook->on_step_begin(model_, stage_step, state);
  step_state_.set(state);
  charge_profile(ProfilePart::hooks, "on_step_begin");
}

void StageTrainer::compute_step(const Batch& batch) {
  if (NumericCheck::active()) check_batch(batch);
  {
    std::optional<SharedStatistics> shared;
    if (config_.sync_batch_norm.value_or(false)) shared.emplace(ranks_);
    accumulate_gradients(batch, context(), share_of_rank(batch));
  }
  if (exchange_) exchange();
  if (scales_loss_) unscale_gradients(parameters_, step_state_);
  for (const auto& hook : hooks_) {
    if (hook->needs_gradients()) hook->after_backward(model_, step_state_);
  }
  charge_profile(ProfilePart::hooks, "after_backward");
  try {
    update_weights();
  } catch (const OutOfMemoryError& error) {
    throw error.at(str(optimizer_->name(), " update"));
  }
  drop_gradients();
}

void StageTrainer::drop_gradients() {
  if (early_) early_->forget();
  for (const NamedParameter& entry : parameters_) entry.parameter->zero_grad();
}

// Addresses of the tensors that may be replaced between two steps, by loading or by swapped averages.
std::vector<const void*> StageTrainer::memory() const {
  std::vector<const void*> addresses;
  if (step_state_.tensor().device().is_cpu()) return addresses;
  for (const NamedParameter& entry : parameters_) {
    addresses.push_back(entry.parameter->value().raw());
    addresses.push_back(entry.parameter->mask().defined() ? entry.parameter->mask().raw() : nullptr);
  }
  for (const NamedBuffer& entry : buffers_) addresses.push_back(entry.buffer->value.raw());
  return addresses;
}

void StageTrainer::update_early(std::span<Parameter* const> some) {
  try {
    const Tensor norm = Tensor::empty({}, DType::f64, norm_sum_.device());
    optimizer_->step(step_state_, norm, some);
    add_norm(norm);
  } catch (const OutOfMemoryError& error) {
    throw error.at(str(optimizer_->name(), " update"));
  }
  for (Parameter* const parameter : some) parameter->zero_grad();
  charge_profile(ProfilePart::update, optimizer_->name());
}

void StageTrainer::update_weights() {
  if (early_) early_->finish();
  if (NumericCheck::active() && !may_overflow()) check_gradients(model_, parameters_);
  if (config_.clip_norm) {
    for (const NamedParameter& entry : parameters_) entry.parameter->mask_grad();  // the norm counts trained weights only
    add_norm(clip_grad_norm(parameters_, *config_.clip_norm));
    charge_profile(ProfilePart::update, "clip_norm");
    optimizer_->step(step_state_);
  } else {
    const Tensor norm = Tensor::empty({}, DType::f64, norm_sum_.device());
    optimizer_->step(step_state_, norm);
    add_norm(norm);
  }
  charge_profile(ProfilePart::update, optimizer_->name());
  for (const auto& hook : hooks_) hook->after_step(model_, step_state_);
  charge_profile(ProfilePart::hooks, "after_step");
  if (NumericCheck::active()) check_update(parameters_, optimizer_->state());
  if (scales_loss_) update_loss_scale(step_state_);
}

void StageTrainer::add_norm(const Tensor& norm) const {
  if (!scales_loss_) return accumulate(norm_sum_, norm);
  const NoGrad no_grad;
  constexpr auto kSkip = static_cast<std::int64_t>(offsetof(StepStateData, skip));  // 0 or 1, so its lowest byte holds the value
  const Tensor skipped = step_state_.tensor().slice(0, kSkip, kSkip + 1).reshape({});
  const Var none(Tensor::zeros({}, norm.dtype(), norm.device()));
  accumulate(norm_sum_, where(skipped, none, Var(norm)).value());
}

double StageTrainer::take_mean_loss() {
  const double mean = loss_count_ > 0 ? loss_sum_.item() / static_cast<double>(loss_count_) : 0.0;
  loss_sum_.fill(0.0);
  loss_count_ = 0;
  TESSERA_CHECK(std::isfinite(mean), NumericError, "training: the loss is ", spelled(mean), "; ", kAdvice);
  return mean;
}

void StageTrainer::check_finite() const {
  for (const NamedParameter& entry : parameters_) {
    TESSERA_CHECK(all_finite(entry.parameter->value()), NumericError, "training: ", entry.path, " holds a NaN or Inf; ", kAdvice);
  }
  for (const NamedBuffer& entry : buffers_) {
    TESSERA_CHECK(all_finite(entry.buffer->value), NumericError, "training: ", entry.path, " holds a NaN or Inf; ", kAdvice);
  }
  for (const auto& [name, tensor] : optimizer_->state().tensors) {
    TESSERA_CHECK(all_finite(tensor), NumericError, "training: the optimiser's ", name, " holds a NaN or Inf; ", kAdvice);
  }
  TESSERA_CHECK(all_finite(loss_sum_), NumericError, "training: the loss is ", spelled(loss_sum_.item()), "; ", kAdvice);
  TESSERA_CHECK(all_finite(norm_sum_), NumericError, "training: a gradient held a NaN or Inf; ", kAdvice);
  TESSERA_CHECK(!scales_loss_ || step_state_.read().loss_scale > kSmallestLossScale, NumericError,
                "training: gradients hold a NaN or Inf at any scale of the loss; ", kAdvice);
}

void StageTrainer::begin_stage() {
  for (const auto& hook : hooks_) hook->on_stage_begin(model_);
}

void StageTrainer::between_steps(std::int64_t steps_done) {
  for (const auto& hook : hooks_) {
    if (hook->interval() == 0 || steps_done % hook->interval() != 0) continue;
    const auto start = std::chrono::steady_clock::now();
    hook->between_steps(model_, steps_done);
    hook_seconds_ += std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  }
}

std::vector<Value> StageTrainer::take_rows() {
  std::vector<Value> rows;
  for (const auto& hook : hooks_) std::ranges::move(hook->take_rows(), std::back_inserter(rows));
  return rows;
}

std::string StageTrainer::hook_summary() const {
  std::string all;
  for (const auto& hook : hooks_) {
    const std::string text = hook->summary();
    if (!text.empty()) all += str(all.empty() ? "" : ", ", text);
  }
  return all;
}

void StageTrainer::end_stage() {
  graph_.forget();
  exchange_.reset();
  for (const auto& hook : hooks_) hook->on_stage_end(model_);
  if (renew_) renew_();
  hooks_.clear();
}

void StageTrainer::gather_state() {
  if (exchange_ && exchange_->power() != nullptr) exchange_->power()->gather();
}

std::map<std::string, State> StageTrainer::shared_state() const {
  std::map<std::string, State> parts;
  parts["optimizer"] = optimizer_->state();
  for (const auto& hook : hooks_) parts[part_of_hook(hook->name())] = hook->state();
  if (exchange_ && exchange_->power() != nullptr) parts[kPowerSgdPart] = exchange_->power()->factors();
  if (!scales_loss_) return parts;
  const StepStateData kept = step_state_.read();
  parts["trainer"].meta.set("loss_scale", kept.loss_scale);
  parts["trainer"].meta.set("good_steps", kept.good_steps);
  return parts;
}

std::map<std::string, State> StageTrainer::state() const {
  std::map<std::string, State> parts = shared_state();
  if (exchange_ && exchange_->power() != nullptr) parts[kPowerSgdPart] = exchange_->power()->state();
  parts["trainer"].tensors["loss_sum"] = loss_sum_;
  parts["trainer"].meta.set("loss_count", loss_count_);
  return parts;
}

void StageTrainer::load_state(const std::map<std::string, State>& parts) {
  const auto part = [&](const std::string& name) -> const State& {
    const auto found = parts.find(name);
    TESSERA_CHECK(found != parts.end(), IoError, "checkpoint: the part '", name, "' is missing");
    return found->second;
  };
  optimizer_->load_state(part("optimizer"));
  for (const auto& hook : hooks_) hook->load_state(part(part_of_hook(hook->name())));
  if (exchange_ && exchange_->power() != nullptr) exchange_->power()->load_state(part(kPowerSgdPart));
  loss_sum_.copy_from(part("trainer").tensors.at("loss_sum").to(loss_sum_.device()));
  const Value& meta = part("trainer").meta;
  loss_count_ = meta.at("loss_count").as_int();
  const Value* scale = meta.find("loss_scale");  // absent if the run used another precision before
  if (scales_loss_ && scale != nullptr) step_state_.load(scale->as_double(), meta.at("good_steps").as_int());
}

}  // namespace tessera
