// Learning-rate schedules: pure functions of the step within a stage and the stage's length, so that resuming needs no state.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "core/config/fields.h"

namespace tessera {

// All but one_cycle begin with a linear warm-up of W steps: lr = base (step + 1) / W for step < W (Goyal et al. 2017). Below,
// t counts steps after the warm-up and T is how many there are.
struct ConstantSchedule {  // base
  static constexpr const char* kName = "constant";
  Duration warmup = Duration::steps(0);
  void fields(Fields& f);
};

struct StepSchedule {  // base gamma^k, k = falls so far; falls are counted from the stage's begin, warm-up included
  static constexpr const char* kName = "step";
  double gamma = 0.1;
  std::optional<Duration> every = {};         // one of `every` and `milestones`
  std::vector<std::string> milestones = {};  // durations, rising: ["100e", "150e"]
  Duration warmup = Duration::steps(0);
  void fields(Fields& f);
};

struct CosineSchedule {  // min + (base - min) (1 + cos(pi t / T)) / 2 (Loshchilov and Hutter 2017, eq. 5, without restarts)
  static constexpr const char* kName = "cosine";
  double min = 0;
  Duration warmup = Duration::steps(0);
  void fields(Fields& f);
};

struct PolySchedule {  // min + (base - min) (1 - t / T)^power
  static constexpr const char* kName = "poly";
  double power = 1;
  double min = 0;
  Duration warmup = Duration::steps(0);
  void fields(Fields& f);
};

// base / div rises to base over the first `rise` of the stage, then falls to base / (div final_div) at its last step, both
// along half a cosine: torch.optim.lr_scheduler.OneCycleLR (Smith and Topin 2018).
struct OneCycleSchedule {
  static constexpr const char* kName = "one_cycle";
  double rise = 0.3;
  double div = 25;
  double final_div = 1e4;
  void fields(Fields& f);
};

struct ScheduleConfig {
  std::variant<ConstantSchedule, StepSchedule, CosineSchedule, PolySchedule, OneCycleSchedule> form;
  void fields(Fields& f) {
    f.choose("name", form, {.help = "how the learning rate moves within a stage", .example = "cosine", .observable = "plan"});
  }
};

// The learning rate of one step, 0 <= step; past the stage's end the last step's value holds.
double scheduled_lr(const ScheduleConfig& config, double base_lr, std::int64_t step, const StageLength& stage);

}  // namespace tessera
