#include "train/report/smoke.h"

#include <algorithm>
#include <chrono>
#include <ostream>

#include "compress/report.h"
#include "core/config/read.h"
#include "core/io/scratch_folder.h"
#include "core/support/error.h"
#include "core/support/text.h"
#include "train/config/yaml_writer.h"
#include "train/report/state_diff.h"
#include "train/report/table.h"
#include "train/run/compute_dtype.h"
#include "train/run/decisions_file.h"
#include "train/run/environment.h"
#include "train/run/evaluate.h"
#include "train/run/run_folder.h"
#include "train/run/run_saver.h"
#include "train/run/run_state.h"
#include "train/run/stage_passes.h"

namespace tessera {
namespace {

constexpr std::int64_t kSteps = 2;
constexpr std::int64_t kTimings = 6;  // per layer: shows that it can be timed, not how fast it is
constexpr std::int64_t kTableRepeats = 5;  // the fewest that report.latency allows: the timings are thrown away

class Clock {
 public:
  double seconds() const { return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count(); }

 private:
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

ExperimentConfig prepared(ExperimentConfig config) {
  config.device = resolve_device(config.device).name();
  config.threads.compute = resolve_compute_threads(config.threads.compute);
  config.report.latency.repeats = kTableRepeats;
  for (StageConfig& stage : config.stages) {
    if (stage.training.ema) stage.training.ema->statistics = std::min(stage.training.ema->statistics, kSteps);
  }
  return config;
}

void check_equal(const std::map<std::string, State>& saved, const std::map<std::string, State>& other, const char* what) {
  for (const auto& [name, state] : saved) {
    const auto found = other.find(name);
    TESSERA_CHECK(found != other.end(), InternalError, what, " has no part '", name, "'");
    const std::vector<TensorDifference> differences = tensor_differences(state, found->second);
    if (!differences.empty()) {
      const TensorDifference& first = differences.front();
      throw InternalError(str(what, " differs from what was saved in part '", name, "', first in ", first.name, ": ",
                              first.what.empty() ? str("by at most ", first.max_abs) : first.what));
    }
    TESSERA_CHECK(state.meta == found->second.meta, InternalError, what, " differs from what was saved in part '", name,
                  "': saved ", to_json(state.meta), ", reloaded ", to_json(found->second.meta));
  }
  TESSERA_CHECK(saved.size() == other.size(), InternalError, what, " has ", other.size(), " parts, ", saved.size(),
                " were saved");
}

std::string line_of(const SmokeStage& stage) {
  std::string text = str("smoke ", stage.name, ": ");
  if (!stage.passes.empty()) text += stage.passes + "; ";
  if (stage.steps > 0) {
    text += str(stage.steps, " of ", stage.stage_steps, " steps, loss ", formatted("%.6g", stage.loss.value_or(0.0)), "; ");
  }
  return str(text, "saved and reloaded ", stage.tensors, " tensors, ", stage.checkpoint_bytes, " bytes, all equal; ",
             formatted("%.2f", stage.seconds), " s");
}

class Smoke {
 public:
  Smoke(const Experiment& experiment, RunInputs inputs, const StopRequest& stop, std::ostream* out)
      : config_(prepared(experiment.config)),
        stop_(stop),
        out_(out),
        scratch_("tessera-smoke"),
        folder_(RunFolder::create(real_vfs(), scratch_.path().string(), config_.name)),
        lock_(folder_.path()),
        saver_(real_vfs(), folder_.checkpoints(), config_.checkpoint, lock_),
        state_(config_, std::move(inputs.data)),
        initial_(std::move(inputs.initial)) {
    set_compute_threads(config_.threads.compute);
    decisions_ = decide_for_run(real_vfs(), folder_.decisions(), {}, config_.deterministic);
  }

  void run(SmokeReport& report) {
    const Tf32Products products(takes_tf32(config_));
    begin("start");
    state_.start(std::move(initial_));
    for (;; state_.next_stage()) {
      report.stages.push_back(run_stage());
      say(line_of(report.stages.back()));
      if (state_.at_last_stage()) break;
    }
    begin("table");
    const Clock clock;
    write_file_atomically(real_vfs(), folder_.resolved_config(), to_yaml(write(config_)));
    const std::vector<std::string> runs{folder_.path()};
    report.table_rows = static_cast<std::int64_t>(make_table(real_vfs(), runs, nullptr).rows.size());
    report.table_seconds = clock.seconds();
    say(str("smoke table: ", report.table_rows, " rows; ", formatted("%.2f", report.table_seconds), " s"));
  }

  const std::string& where() const { return where_; }

 private:
  void begin(const std::string& what) {
    if (stop_.requested()) throw Stopped();
    where_ = what;
  }
  void begin_in_stage(const std::string& what) { begin(str("stage ", state_.stage().name, ", ", what)); }
  void say(const std::string& line) {
    if (out_ != nullptr) *out_ << line << std::endl;
  }

  SmokeStage run_stage() {
    const Clock clock;
    SmokeStage stage;
    stage.name = state_.stage().name;
    begin_in_stage("passes");
    const auto before_timing = [&](const std::string& key, const std::string& what) {
      begin_in_stage(str(key, ", timing ", what));
    };
    for (const PassReport& pass : state_.prepare_stage({.before = before_timing}, kTimings)) {
      stage.passes += (stage.passes.empty() ? "" : "; ") + summary(pass);
    }
    const bool trains = state_.stage().train.has_value();
    if (trains) train(stage);
    save_and_reload(stage, trains);
    if (trains) stage.loss = state_.trainer()->take_mean_loss();
    state_.end_stage();
    assume_trained(state_.stage(), state_.model());  // later passes need masks that so few steps may not have made
    SmokeStage end;  // saves the stage's end, from which the table reads the network; it needs no trainer
    save_and_reload(end, false);
    stage.seconds = clock.seconds();
    return stage;
  }

  void train(SmokeStage& stage) {
    begin_in_stage("train");
    state_.begin_training();
    stage.stage_steps = state_.stage_steps();
    for (const std::int64_t steps = std::min(kSteps, stage.stage_steps); stage.steps < steps; ++stage.steps) {
      begin_in_stage(str("step ", stage.steps + 1));
      state_.step();
      state_.trainer()->check_finite();
    }
    validate();
  }

  // One batch: the whole split would take as long as in a run and show nothing more.
  void validate() {
    begin_in_stage("validation");
    Subset val = state_.data().val;
    if (val.size() == 0) return;
    val.indices.resize(static_cast<std::size_t>(std::min(val.size(), config_.data.batch)));
    state_.trainer()->with_evaluation_weights([&] { evaluate_split(state_.model(), val, config_); });
  }

  void save_and_reload(SmokeStage& stage, bool training) {
    begin_in_stage("save");
    const std::map<std::string, State> parts = state_.parts();
    Value manifest = state_.manifest();
    manifest.set("decisions", to_value(decisions_->taken()));
    saver_.save(state_.position(), parts, manifest);
    saver_.finish();
    begin_in_stage("reload");
    const Checkpoint checkpoint = saver_.store().load_latest();
    check_equal(parts, checkpoint.parts, "the file");
    TESSERA_CHECK(manifest == checkpoint.manifest, InternalError, "the manifest differs from what was saved");
    RunState again(config_, state_.data());
    again.load(checkpoint);
    if (training) again.begin_training();
    check_equal(parts, again.parts(), "the reloaded state");
    TESSERA_CHECK(again.manifest() == state_.manifest(), InternalError, "the reloaded run stands elsewhere than the saved one");
    for (const auto& [name, state] : parts) {
      for (const auto& [path, tensor] : state.tensors) {
        ++stage.tensors;
        stage.checkpoint_bytes += static_cast<std::int64_t>(tensor.bytes());
      }
    }
  }

  ExperimentConfig config_;
  const StopRequest& stop_;
  std::ostream* out_;
  ScratchFolder scratch_;
  RunFolder folder_;
  RunLock lock_;
  RunSaver saver_;
  RunState state_;
  InitialModel initial_;  // used up at the start
  std::unique_ptr<DecisionScope> decisions_;
  std::string where_;
};

struct SmokeTable {
  std::int64_t rows = 0;
  double seconds = 0;

  void fields(Fields& f) {
    f.add("rows", rows, {.help = "one per stage"});
    f.add("seconds", seconds, {.help = "that it took"});
  }
};

struct SmokeFailure {
  std::string where;
  std::string message;

  void fields(Fields& f) {
    f.add("where", where, {.help = "stage and part of it"});
    f.add("message", message, {.help = "the error"});
  }
};

}  // namespace

SmokeReport smoke(const Experiment& experiment, RunInputs inputs, const StopRequest& stop, std::ostream* out) {
  SmokeReport report;
  std::unique_ptr<Smoke> run;
  try {
    run = std::make_unique<Smoke>(experiment, std::move(inputs), stop, out);
    run->run(report);
  } catch (const Stopped&) {
    report.stopped = true;
  } catch (const std::exception& error) {
    report.where = run ? run->where() : std::string("temporary folder");
    report.failure = error.what();
    report.bad_input = dynamic_cast<const ConfigError*>(&error) != nullptr;
  }
  return report;
}

void SmokeStage::fields(Fields& f) {
  f.add("name", name, {.help = "of the stage"});
  f.add_computed("passes", passes.empty() ? std::nullopt : std::optional(passes),
                 {.help = "what the passes did; null without one", .nullable = true});
  f.add("steps", steps, {.help = "taken: two, or all there are"});
  f.add("stage_steps", stage_steps, {.help = "of the stage in a real run"});
  f.add("loss", loss, {.help = "mean over the steps; null without any", .nullable = true});
  f.add("tensors", tensors, {.help = "of the checkpoint, equal after the reload"});
  f.add("checkpoint_bytes", checkpoint_bytes, {.help = "of these tensors"});
  f.add("seconds", seconds, {.help = "that the stage took"});
}

void SmokeReport::fields(Fields& f) {
  const std::optional<SmokeTable> table = table_rows > 0 ? std::optional(SmokeTable{table_rows, table_seconds}) : std::nullopt;
  const std::optional<SmokeFailure> failed = where.empty() ? std::nullopt : std::optional(SmokeFailure{where, failure});
  f.add_computed("ok", ok(), {.help = "nothing failed and nobody stopped it"});
  f.add("stopped", stopped, {.help = "on request"});
  f.add("stages", stages, {.help = "gone through"});
  f.add_computed("table", table, {.help = "null when it did not come to it", .nullable = true});
  f.add_computed("failure", failed, {.help = "the first one; null when there was none", .nullable = true});
}

Value to_value(const SmokeReport& report) { return write(report); }

}  // namespace tessera
