#include "train/report/compress_report.h"

#include <filesystem>

#include "compress/report.h"
#include "core/config/read.h"
#include "core/device/precision.h"
#include "core/support/error.h"
#include "layers/models/model.h"
#include "train/report/bench_network.h"
#include "train/run/compress_config.h"
#include "train/run/decisions_file.h"
#include "train/run/environment.h"
#include "train/run/import_weights.h"
#include "train/run/run_folder.h"
#include "train/run/run_settings.h"
#include "train/run/saved_point.h"
#include "train/run/saved_use.h"
#include "train/run/stage_passes.h"

namespace tessera {
namespace {

// A pass whose problems name the place of their keys in the file, and whose keys cannot ask for training data.
class PlacedPass final : public Pass {
 public:
  PlacedPass(StagePass& stage, const CompressSettings& settings) : stage_(stage), settings_(settings) {}

  std::string_view name() const override { return stage_.pass->name(); }
  std::string_view done() const override { return stage_.pass->done(); }
  std::vector<BlockProblem> try_prepare(std::unique_ptr<Module>& root, const Shape& input, const PassMeans& means) override {
    std::vector<BlockProblem> problems = timing_problems(stage_.veto.value(), *root, input);
    if (problems.empty()) problems = stage_.pass->try_prepare(root, input, means);  // may time layers
    for (const std::string& key : stage_.pass->data_keys()) {
      problems.push_back({key, str(key, " needs training data, which compress does not read; leave it out")});
    }
    for (BlockProblem& problem : problems) {
      const std::string path = settings_.path_of(str(stage_.key, '.', problem.key));
      problem.message = to_string(problem_at(settings_.marks, path, problem.message));
    }
    return problems;
  }
  bool matches(const std::string& path, const Module& module) const override { return stage_.pass->matches(path, module); }
  std::unique_ptr<Module> rewrite(const Module& module, LayerReport& report) const override {
    return stage_.pass->rewrite(module, report);
  }
  void complete(PassReport& report) const override { stage_.pass->complete(report); }

 private:
  StagePass& stage_;
  const CompressSettings& settings_;
};

Shape input_of(const CompressSettings& settings, const CompressOptions& options) {
  if (!options.input.empty()) return parse_input(options.input);
  if (settings.input) return *settings.input;
  const std::optional<Shape> usual = usual_input(settings.model);
  TESSERA_CHECK(usual, ConfigError, options.config, ": model ", settings.model.name(),
                " takes inputs of many shapes; give one with --input, e.g. 3x32x32, or as input: [3, 32, 32] in the file");
  return *usual;
}

// Faults of the weights are faults of the user's input, whether they do not fit or cannot be read.
InitialModel model_of(Vfs& vfs, ModelConfig config, const Shape& input, const std::string& weights) {
  config.weights = weights;
  try {
    return trained_model(vfs, config, input);
  } catch (const ShapeError& error) {
    throw ConfigError(str("compress: ", weights, ": ", error.what()));
  } catch (const IoError& error) {
    throw ConfigError(error.what());
  }
}

// The use of the smaller network: that of the network it was made from, with the new timed choices.
std::optional<NetworkUse> use_of(Vfs& vfs, const InitialModel& initial, const CompressOptions& options,
                                 const DecisionMap& taken) {
  std::optional<NetworkUse> use = initial.use;
  if (std::filesystem::is_directory(options.weights)) {
    const RunFolder run = RunFolder::open(vfs, options.weights);
    use = use_of_run(settings_of(run, {}, {}, "compress"), saved_points(vfs, run).back().manifest.extra);
  }
  if (use) use->decisions = to_value(taken);
  return use;
}

VetoOptions veto_of(const StagePass& stage, const CompressSettings& settings, Device device,
                    const std::function<void(const std::string&)>& before) {
  VetoOptions options = stage.veto.value();
  options.timing.compute = compute_dtype(settings.precision, device);
  options.timing.device = device;
  options.before_timing = before;
  options.kept_for = timing_environment(device.name(), settings.threads);
  options.other_phases = other_phases(options.timing.phase, settings.report, std::nullopt);  // nothing is trained
  return options;
}

}  // namespace

CompressReport compress_network(Vfs& vfs, const CompressOptions& options, const std::function<void(const std::string&)>& before) {
  TESSERA_CHECK(!vfs.exists(options.output), ConfigError, "compress: ", options.output,
                " is there already; give another file with --out");
  const CompressSettings settings = load_compress_settings(options.config, options.overrides);
  const Device device = resolve_device(settings.device);
  const Shape input = input_of(settings, options);
  InitialModel initial = model_of(vfs, settings.model, input, options.weights);
  std::unique_ptr<Module>& model = initial.model;
  move_to(*model, device);
  set_compute_threads(settings.threads);
  const Tf32Products products(settings.precision == "tf32");
  const DecisionScope decisions({.measure = !settings.deterministic,
                                 .known = options.decisions.empty() ? DecisionMap() : read_decisions(vfs, options.decisions)});
  CompressReport report{.weights = options.weights,
                        .config = options.config,
                        .stage = settings.stage.name,
                        .input = input,
                        .device = device.name(),
                        .precision = settings.precision,
                        .passes = {},
                        .output = options.output};
  for (StagePass& stage : stage_passes(settings.stage, settings.report)) {
    PlacedPass pass(stage, settings);
    const Veto veto(veto_of(stage, settings, device, before));
    report.passes.push_back(run_pass(model, pass, input, &veto));
  }
  if (!options.record.empty()) write_decisions(vfs, options.record, decisions.taken());
  report.bytes = write_network(vfs, *model, input, options.output, use_of(vfs, initial, options, decisions.taken()));
  return report;
}

void CompressReport::fields(Fields& f) {
  f.add("weights", weights, {.help = "what was compressed"});
  f.add("config", config, {.help = "the file that says how"});
  f.add("stage", stage, {.help = "of an experiment file; empty for a smaller one"});
  f.add_computed("input", std::vector<std::int64_t>(input.begin(), input.end()), {.help = "shape of one sample"});
  f.add("device", device, {.help = "where layers were timed"});
  f.add("precision", precision, {.help = "in which layers were timed"});
  f.add("passes", passes, {.help = "what each did"});
  f.add("output", output, {.help = "the file that was written"});
  f.add("bytes", bytes, {.help = "of that file"});
}

std::string to_text(const CompressReport& report) {
  std::string text = str(report.weights, " as ", report.config, report.stage.empty() ? "" : ", stage ", report.stage,
                         " says; input ", report.input, ", ", report.device, ", ", report.precision, '\n');
  for (const PassReport& pass : report.passes) text += '\n' + pass_text(pass);
  return text;
}

}  // namespace tessera
