// Forecasts what reproduce() would do and how long it may take.
#include <algorithm>
#include <map>
#include <utility>

#include "compress/timing/compare.h"
#include "compress/timing/summary.h"
#include "core/config/read.h"
#include "core/device/decisions.h"
#include "train/reproduce/cell_run.h"
#include "train/reproduce/reproduce.h"
#include "train/reproduce/table_plan.h"
#include "train/run/compute_dtype.h"
#include "train/run/environment.h"
#include "train/run/model_state.h"

namespace tessera {
namespace {

// Seconds of one training step of the dense network, forward and backward.
double seconds_of_step(const Cell& cell, const RunInputs& inputs) {
  const ExperimentConfig& config = cell.experiment.config;
  set_compute_threads(config.threads.compute);
  const std::unique_ptr<Module> model = copy_of(*inputs.initial.model);
  const Device device = resolve_device(config.device);
  move_to(*model, device);
  Shape input = sample_shape(inputs.data);
  input.set(0, config.data.batch);
  const DecisionScope fastest({.measure = true});
  const TimingOptions options{
      .phase = Phase::training, .compute = compute_dtype_of(config), .device = device, .sampling = Sampling::told_in(5)};
  return quantile(time_dense(*model, input, false, options).dense, 0.5) / 1000;
}

class Forecast {
 public:
  Forecast(Vfs& vfs, const TablePlan& plan) : vfs_(vfs), plan_(plan) {}

  PlannedCell planned(const Cell& cell, std::string name) {
    const ExperimentConfig& config = cell.experiment.config;
    const Value settings = settings_for_figures(config, describe_environment(config));
    Way way = find_way(vfs_, cell, plan_.runs());
    if (way.kind == Way::Kind::fork || way.kind == Way::Kind::train) take_earlier(way, config, settings);
    earlier_.push_back({config, settings});
    PlannedCell planned{.cell = std::move(name), .way = way_text(way)};
    const ArmPace& pace = pace_of(cell);
    for (auto stage = config.stages.begin() + way.stages; stage != config.stages.end(); ++stage) {
      if (stage->train) planned.steps += stage->train->resolve(pace.steps_per_epoch, 0);
    }
    planned.seconds = static_cast<double>(planned.steps) * pace.seconds_per_step;
    return planned;
  }

 private:
  struct Earlier {
    ExperimentConfig config;
    Value settings;
  };
  struct ArmPace {
    std::int64_t steps_per_epoch = 0;
    double seconds_per_step = 0;
  };

  // Lowers `shared` while a later stage learns from a teacher that the earlier run no longer keeps at that point.
  static std::size_t with_teachers(const ExperimentConfig& config, const ExperimentConfig& earlier, std::size_t shared) {
    const auto kept = [&](const std::string& teacher) {
      return std::any_of(earlier.stages.begin() + static_cast<std::ptrdiff_t>(shared), earlier.stages.end(),
                         [&](const StageConfig& stage) { return stage.distill && stage.distill->from == teacher; });
    };
    for (; shared > 0; --shared) {
      const auto lost = [&](const StageConfig& stage) {
        if (!stage.distill) return false;
        const auto teacher = std::ranges::find(config.stages, *stage.distill->from, &StageConfig::name);
        return teacher - config.stages.begin() + 1 < static_cast<std::ptrdiff_t>(shared) && !kept(teacher->name);
      };
      if (std::none_of(config.stages.begin() + static_cast<std::ptrdiff_t>(shared), config.stages.end(), lost)) break;
    }
    return shared;
  }

  // A cell that runs earlier may leave this one more finished stages than the folders hold now.
  void take_earlier(Way& way, const ExperimentConfig& config, const Value& settings) const {
    for (const Earlier& earlier : earlier_) {
      const std::size_t alike = std::min(shared_stages(settings, earlier.settings), config.stages.size() - 1);
      const std::size_t shared = with_teachers(config, earlier.config, alike);
      if (static_cast<std::int64_t>(shared) <= way.stages) continue;
      way = {.kind = Way::Kind::fork,
             .run = earlier.config.name,
             .at = config.stages[shared - 1].name,
             .stages = static_cast<std::int64_t>(shared)};
    }
  }

  // The pace from results of the arm, or from a step timed now if there are none.
  const ArmPace& pace_of(const Cell& cell) {
    const auto found = arms_.find(cell.arm);
    if (found != arms_.end()) return found->second;
    const RunInputs inputs = load_inputs(vfs_, cell.experiment.config);
    const std::optional<double> known = known_seconds_per_step(cell.arm);
    const ArmPace pace{.steps_per_epoch = steps_per_epoch(cell.experiment.config.data, inputs.data.train.size()),
                       .seconds_per_step = known ? *known : seconds_of_step(cell, inputs)};
    return arms_.emplace(cell.arm, pace).first->second;
  }

  std::optional<double> known_seconds_per_step(const std::string& arm) const {
    for (const CellResult& result : plan_.results().cells()) {
      if (result.arm == arm && result.steps > 0) return result.train_seconds / static_cast<double>(result.steps);
    }
    return std::nullopt;
  }

  Vfs& vfs_;
  const TablePlan& plan_;
  std::map<std::string, ArmPace> arms_;
  std::vector<Earlier> earlier_;
};

}  // namespace

std::vector<PlannedCell> plan_table(Vfs& vfs, const std::string& table_file, const ReproduceOptions& options) {
  const TablePlan plan(vfs, table_file, options);
  const std::vector<Cell> pending = plan.pending();
  const std::vector<Cell> undecided = plan.undecided();
  std::vector<Cell> all = pending;
  all.insert(all.end(), undecided.begin(), undecided.end());
  plan.check(all);
  Forecast forecast(vfs, plan);
  std::vector<PlannedCell> planned;
  for (const ArmRow& row : plan.view().rows) {
    for (const CellResult& cell : row.cells) planned.push_back({.cell = cell.name, .way = "done"});
  }
  for (const Cell& cell : pending) planned.push_back(forecast.planned(cell, cell.experiment.config.name));
  for (const Cell& cell : undecided) planned.push_back(forecast.planned(cell, str(cell.arm, "-seed", cell.seed)));
  return planned;
}

}  // namespace tessera
