#include "train/report/bench_network.h"

#include <algorithm>
#include <charconv>
#include <filesystem>

#include "compress/timing/layer_times.h"
#include "core/config/suggest.h"
#include "core/device/precision.h"
#include "core/support/error.h"
#include "core/support/text.h"
#include "layers/decoding.h"
#include "layers/models/model.h"
#include "train/compute_threads.h"
#include "train/config/overrides.h"
#include "train/plan/check.h"
#include "train/run/environment.h"
#include "train/run/import_weights.h"
#include "train/run/run_settings.h"
#include "train/run/saved_model.h"
#include "train/run/saved_point.h"
#include "train/run/stage_passes.h"

namespace tessera {
namespace {

constexpr std::string_view kAllowedOfRuns[]{"report.latency.batch", "threads.compute"};
constexpr std::int64_t kMost = 1'000'000;  // the greatest batch and the greatest size

std::int64_t parse_count(std::string_view option, std::string_view text, std::int64_t most, std::string_view form) {
  std::int64_t count = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), count);
  const bool whole = error == std::errc() && end == text.data() + text.size();
  TESSERA_CHECK(whole && count >= 1 && count <= most, ConfigError, option, ": '", text, "' is no whole number from 1 to ", most,
                "; write ", form);
  return count;
}

void set_machine(BenchNetwork& network, const BenchOptions& options, const ExperimentConfig& config) {
  network.device = resolve_device(options.device.empty() ? config.device : options.device);
  const std::string& precision = options.precision.empty() ? config.precision : options.precision;
  network.compute = compute_dtype(precision, network.device);
  network.tf32 = precision == "tf32";
  TESSERA_CHECK(network.device.is_cpu() || options.threads.empty(), ConfigError, "--threads: the device is ", network.device,
                ", whose kernels have no threads to set; leave it out, or give --device cpu");
}

void set_options(BenchNetwork& network, const BenchOptions& options, const ExperimentConfig& config) {
  set_machine(network, options, config);
  TESSERA_CHECK(!options.batch.empty() || !config.report.latency.batch.empty(), ConfigError,
                "bench: report.latency.batch is empty; give --batch, e.g. --batch 1,32");
  network.batches = options.batch.empty() ? config.report.latency.batch : parse_counts("--batch", options.batch, kMost);
  network.threads = options.threads.empty() ? std::vector{resolve_compute_threads(config.threads.compute)}
                                            : parse_counts("--threads", options.threads, kMostComputeThreads);
}

BenchNetwork network_of_model(Vfs& vfs, const BenchOptions& options) {
  Value block = Value::map();
  block.set("name", options.target);
  for (const std::string& text : options.overrides) apply_override(block, text);
  const auto config = read<ModelConfig>(block, "model");
  TESSERA_CHECK(config.name() == options.target, ConfigError, "bench: name=", config.name(), ": the model is ", options.target,
                ", which stands before the keys of its block");
  BenchNetwork network;
  const std::optional<Shape> usual = usual_input(config);
  TESSERA_CHECK(usual || !options.input.empty(), ConfigError, "bench: model ", config.name(),
                " takes inputs of many shapes; give one with --input, e.g. 3x32x32");
  network.input = options.input.empty() ? *usual : parse_input(options.input);
  network.model = initial_model(vfs, config, network.input, 0).model;
  network.state = config.weights.empty() ? "random weights" : "weights from " + config.weights;
  network.next = str("tessera init my-", config.name());
  set_options(network, options, ExperimentConfig());
  return network;
}

BenchNetwork network_of_run(Vfs& vfs, const BenchOptions& options) {
  const RunFolder run = RunFolder::open(vfs, options.target);
  const ExperimentConfig config = settings_of(run, options.overrides, kAllowedOfRuns, "bench");
  const Checkpoint checkpoint = load_at(vfs, run, options.at, "bench");
  BenchNetwork network;
  network.model = evaluation_model(checkpoint);
  network.input = options.input.empty() ? input_of(checkpoint.manifest) : parse_input(options.input);
  network.state = str("stage ", checkpoint.manifest.at("stage_name").as_string(), ", step ", checkpoint.step);
  network.next = "tessera table " + shell_word(run.path());
  set_options(network, options, config);
  return network;
}

BenchNetwork network_of_file(Vfs& vfs, const BenchOptions& options) {
  std::vector<std::string> overrides = options.overrides;
  if (!options.device.empty()) overrides.push_back("device=" + options.device);
  const Experiment experiment = load_experiment(options.target, overrides);
  const ExperimentConfig& config = experiment.config;
  BenchNetwork network;
  if (options.input.empty()) {
    RunInputs inputs = check_experiment(experiment);
    network.input = sample_shape(inputs.data);
    network.model = std::move(inputs.initial.model);
  } else {
    network.input = parse_input(options.input);
    network.model = initial_model(vfs, config.model, network.input, static_cast<std::uint64_t>(config.seed)).model;
  }
  StageResults results;
  for (const StageConfig& stage : config.stages) {
    for (StagePass& pass : stage_passes(stage, config.report, results, Values::zeros)) {
      run_stage_pass(pass, stage, network.model, network.input, results);
    }
    assume_trained(stage, *network.model);
  }
  initialize(*network.model, static_cast<std::uint64_t>(config.seed));  // random values, so that nothing is zero
  network.state = "ranks chosen before training, random weights";
  network.next = "tessera train " + shell_word(options.target);
  set_options(network, options, config);
  return network;
}

[[noreturn]] void throw_unknown(const std::string& target) {
  const std::vector<std::string_view> names = model_names();
  std::string message = str("bench: '", target, "' is no run folder, experiment file or model");
  for (const std::string& near : nearest_names(target, names)) message += str("; did you mean '", near, "'?");
  message += "; models:";
  for (const std::string_view name : names) message += str(' ', name);
  throw ConfigError(message);
}

// A model's name takes precedence over a folder of the same name, which is written with "./".
BenchNetwork network_of(Vfs& vfs, const BenchOptions& options) {
  const std::vector<std::string_view> names = model_names();
  const bool model = std::ranges::find(names, options.target) != names.end();
  const bool folder = !model && std::filesystem::is_directory(options.target);
  TESSERA_CHECK(folder || options.at.empty(), ConfigError, "--at names a checkpoint of a run; ", options.target,
                " is no run folder");
  if (model) return network_of_model(vfs, options);
  if (folder) return network_of_run(vfs, options);
  if (!vfs.exists(options.target)) throw_unknown(options.target);
  return network_of_file(vfs, options);
}

}  // namespace

std::vector<std::int64_t> parse_counts(std::string_view option, std::string_view text, std::int64_t most) {
  std::vector<std::int64_t> counts;
  for (const std::string& part : split(text, ',')) {
    counts.push_back(parse_count(option, part, most, "whole numbers with commas between, e.g. 1,32"));
  }
  return counts;
}

Shape parse_input(std::string_view text) {
  std::vector<std::int64_t> sizes;
  for (const std::string& part : split(text, 'x')) {
    sizes.push_back(parse_count("--input", part, kMost, "channels, height and width, e.g. 3x224x224, or one number of features"));
  }
  if (sizes.size() == 1) return {1, sizes[0]};
  TESSERA_CHECK(sizes.size() == 3, ConfigError, "--input: '", text, "' has ", sizes.size(),
                " sizes; write channels, height and width, e.g. 3x224x224, or one number of features");
  return {1, sizes[1], sizes[2], sizes[0]};
}

BenchNetwork load_bench_network(Vfs& vfs, const BenchOptions& options) {
  try {
    BenchNetwork network = network_of(vfs, options);
    network.target = options.target;
    network.model->output_shape(network.input);
    if (options.phase == Phase::decode) require_decoding(*network.model, "bench: " + options.target);
    network.dense = dense_twins(*network.model);
    move_to(*network.model, network.device);
    for (const Replaced& layer : network.dense) move_to(*layer.dense, network.device);
    return network;
  } catch (const ShapeError& error) {
    throw ConfigError(str("bench: ", options.target, ": ", error.what()));
  }
}

}  // namespace tessera
