#include "train/run/compress_config.h"

#include <algorithm>
#include <utility>

#include "core/device/precision.h"
#include "core/support/error.h"
#include "train/config_file.h"
#include "train/run/stage_passes.h"

namespace tessera {
namespace {

// The NHWC shape of one sample. `sizes` is [c, h, w] of an image or [features] of a row.
std::optional<Shape> sample_of(const std::vector<std::int64_t>& sizes) {
  if (sizes.empty()) return std::nullopt;
  return sizes.size() == 1 ? Shape{1, sizes[0]} : Shape{1, sizes[1], sizes[2], sizes[0]};
}

// The weights come from the trained network, so the initial weights of the run do not matter here.
ModelConfig without_weights(ModelConfig model) {
  model.weights.clear();
  model.head = "keep";
  return model;
}

// Placeholder for the weights of `name: saved`, which the file does not name.
constexpr const char* kCommandWeights = "those of the command";

CompressSettings settings_of(const CompressConfig& config) {
  StageConfig stage;
  stage.factorise = config.factorise;
  return {.device = config.device,
          .precision = config.precision,
          .deterministic = config.deterministic,
          .threads = config.threads.compute,
          .input = sample_of(config.input),
          .model = without_weights(config.model),
          .stage = std::move(stage),
          .report = {},
          .block = "",
          .marks = {}};
}

CompressSettings settings_of(const Experiment& experiment, const std::string& path) {
  const ExperimentConfig& config = experiment.config;
  const auto found = std::ranges::find_if(config.stages, [](const StageConfig& each) { return each.factorise.has_value(); });
  TESSERA_CHECK(found != config.stages.end(), ConfigError, path,
                ": no stage compresses the network; one needs a factorise block");
  StageConfig stage = *found;
  stage.factorise->from.reset();  // nothing was trained here, so ranks are chosen for these weights
  stage.admm.reset();
  return {.device = config.device,
          .precision = config.precision,
          .deterministic = config.deterministic,
          .threads = config.threads.compute,
          .input = sample_shape(config.data),
          .model = without_weights(config.model),
          .stage = std::move(stage),
          .report = config.report,
          .block = str("stages[", found - config.stages.begin(), ']'),
          .marks = experiment.marks};
}

}  // namespace

void CompressConfig::fields(Fields& f) {
  const std::span<const std::string_view> precisions = precision_names();
  f.add("version", version, {.help = "format of this file", .range = between(1, 1), .example = "1", .required = true});
  f.add("device", device, {.help = "auto, cpu, cuda or cuda:N", .example = "cpu"});
  f.add("precision", precision,
        {.help = "that layers are timed in", .choices = {precisions.begin(), precisions.end()}, .example = "f32"});
  f.add("deterministic", deterministic, {.help = "true: no choice by a clock"});
  f.add("threads", threads, {.help = "compute threads", .example = "{compute: 4}"});
  f.add("input", input,
        {.help = "channels, height and width of an image, or one number of features; the usual one of the model when absent",
         .range = at_least(1),
         .example = "[3, 32, 32]"});
  f.add("model", model, {.help = "the dense network", .example = "{name: resnet20}", .required = true});
  f.add("factorise", factorise,
        {.help = "as in a stage of an experiment file", .example = "{layers: '*', ranks: {macs: 0.4}}", .required = true});
  f.require(!factorise.from, "factorise.from", "names a stage, and this file has none; give layers and ranks");
  f.require(input.empty() || input.size() == 1 || input.size() == 3, "input",
            "needs channels, height and width, or one number of features");
  f.require(model.weights.empty() || model.weights == kCommandWeights, "model.weights",
            "stand before the options of the command; leave them out");
}

CompressSettings load_compress_settings(const std::string& path, std::span<const std::string> overrides) {
  std::vector<ConfigProblem> problems;
  std::optional<Value> root = load_config_file(path, overrides, problems);
  if (!root) throw_config_error(problems);
  if (root->is_map() && root->find("stages") != nullptr) return settings_of(load_experiment(path, overrides), path);
  const std::size_t from_yaml = problems.size();
  // `name: saved` needs weights. They are those that the command is given.
  if (Value* const model = root->is_map() ? root->find("model") : nullptr; model != nullptr && model->is_map()) {
    const Value* const name = model->find("name");
    const bool saved = name != nullptr && name->is_string() && name->as_string() == kSavedModel;
    if (saved && model->find("weights") == nullptr) model->set("weights", kCommandWeights);
  }
  CompressConfig config;
  read(*root, config, "", problems);
  check_device(*root, config.device, config.precision, DeviceIs::here, problems);
  problems = tidy(std::move(problems), from_yaml);
  if (!problems.empty()) throw_config_error(problems);
  CompressSettings settings = settings_of(config);
  settings.marks = marks_of(*root);
  return settings;
}

}  // namespace tessera
