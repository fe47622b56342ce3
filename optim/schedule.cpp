#include "optim/schedule.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "core/support/error.h"

namespace tessera {

namespace {

// A step's place in its stage and its progress after the warm-up.
struct Position {
  std::int64_t step;  // in the stage
  std::int64_t warmup;
  double progress;    // t / T, both counted from the end of the warm-up
};

Position locate(const Duration& warmup, std::int64_t step, const StageLength& stage) {
  const std::int64_t length = std::clamp<std::int64_t>(warmup.resolve(stage.steps_per_epoch, stage.steps), 0, stage.steps);
  const double rest = static_cast<double>(std::max<std::int64_t>(stage.steps - length, 1));
  return {step, length, static_cast<double>(step - length) / rest};
}

double ramp(double base, const Position& at) { return base * static_cast<double>(at.step + 1) / static_cast<double>(at.warmup); }

// Half a cosine: `from` at progress 0, `to` at progress 1.
double half_cosine(double from, double to, double progress) {
  return to + (from - to) * (1 + std::cos(std::numbers::pi * progress)) / 2;
}

double after_warmup(const ConstantSchedule&, double base, const Position&, const StageLength&) { return base; }

double after_warmup(const StepSchedule& config, double base, const Position& at, const StageLength& stage) {
  std::int64_t falls = 0;
  if (config.every) {
    falls = at.step / std::max<std::int64_t>(config.every->resolve(stage.steps_per_epoch, stage.steps), 1);
  }
  for (const std::string& milestone : config.milestones) {
    if (at.step >= Duration::parse(milestone).resolve(stage.steps_per_epoch, stage.steps)) ++falls;
  }
  return base * std::pow(config.gamma, static_cast<double>(falls));
}

double after_warmup(const CosineSchedule& config, double base, const Position& at, const StageLength&) {
  return half_cosine(base, config.min, at.progress);
}

double after_warmup(const PolySchedule& config, double base, const Position& at, const StageLength&) {
  return config.min + (base - config.min) * std::pow(1 - at.progress, config.power);
}

template <class Schedule>
double lr_of(const Schedule& config, double base, std::int64_t step, const StageLength& stage) {
  const Position at = locate(config.warmup, step, stage);
  return step < at.warmup ? ramp(base, at) : after_warmup(config, base, at, stage);
}

double lr_of(const OneCycleSchedule& config, double base, std::int64_t step, const StageLength& stage) {
  const double last = static_cast<double>(stage.steps - 1);
  const double peak = config.rise * static_cast<double>(stage.steps) - 1;
  const double at = static_cast<double>(step);
  const double low = base / config.div;
  if (at <= peak) return half_cosine(low, base, peak > 0 ? at / peak : 1);
  const double rest = last - std::max(peak, 0.0);
  return half_cosine(base, low / config.final_div, rest > 0 ? (at - std::max(peak, 0.0)) / rest : 1);
}

void add_warmup(Fields& f, Duration& warmup) {
  f.add("warmup", warmup, {.help = "linear rise from 0 at the stage's begin", .example = "5e", .observable = "bytes"});
}

bool all_durations(const std::vector<std::string>& texts) {
  try {
    for (const std::string& text : texts) Duration::parse(text);
  } catch (const ConfigError&) {
    return false;
  }
  return true;
}

}  // namespace

void ConstantSchedule::fields(Fields& f) { add_warmup(f, warmup); }

void StepSchedule::fields(Fields& f) {
  f.add(
      "gamma", gamma,
      {.help = "factor at each fall", .range = {.min = 0, .max = 1, .open_min = true}, .example = "0.2", .observable = "bytes"});
  f.add("every", every, {.help = "time between falls", .range = positive, .example = "30e", .observable = "bytes"});
  f.add("milestones", milestones, {.help = "times of the falls", .example = "[100e, 150e]", .observable = "bytes"});
  add_warmup(f, warmup);
  f.require(every.has_value() == milestones.empty(), "milestones", "needs one of `every` and `milestones`");
  f.require(all_durations(milestones), "milestones", "needs durations such as 100e, 5000s or 50%");
}

void CosineSchedule::fields(Fields& f) {
  f.add("min", min,
        {.help = "learning rate at the stage's end", .range = non_negative, .example = "1.0e-4", .observable = "bytes"});
  add_warmup(f, warmup);
}

void PolySchedule::fields(Fields& f) {
  f.add("power", power, {.help = "exponent; 1 is a straight line", .range = positive, .example = "2", .observable = "bytes"});
  f.add("min", min,
        {.help = "learning rate at the stage's end", .range = non_negative, .example = "1.0e-4", .observable = "bytes"});
  add_warmup(f, warmup);
}

void OneCycleSchedule::fields(Fields& f) {
  f.add("rise", rise, {.help = "share of the stage that rises", .range = unit_interval, .example = "0.4", .observable = "bytes"});
  f.add("div", div, {.help = "first learning rate = base / div", .range = positive, .example = "10", .observable = "bytes"});
  f.add("final_div", final_div,
        {.help = "last learning rate = first / final_div", .range = positive, .example = "100", .observable = "bytes"});
}

double scheduled_lr(const ScheduleConfig& config, double base_lr, std::int64_t step, const StageLength& stage) {
  TESSERA_CHECK(step >= 0 && stage.steps >= 1 && stage.steps_per_epoch >= 1, InternalError, "scheduled_lr: step is ", step,
                ", the stage has ", stage.steps, " steps, an epoch ", stage.steps_per_epoch);
  const std::int64_t within = std::min(step, stage.steps - 1);
  return std::visit([&](const auto& schedule) { return lr_of(schedule, base_lr, within, stage); }, config.form);
}

}  // namespace tessera
