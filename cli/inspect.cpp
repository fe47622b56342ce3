// plan, layers, validate, schema: what an experiment file means, without training.
#include <cstdio>
#include <iostream>
#include <memory>

#include "cli/verbs.h"
#include "compress/factorise.h"
#include "compress/pass_runner.h"
#include "compress/report.h"
#include "core/config/range_text.h"
#include "core/config/read.h"
#include "core/error.h"
#include "layers/models/model.h"
#include "train/check.h"
#include "train/data/builtin.h"
#include "train/experiment.h"

namespace tessera::cli {
namespace {

struct InspectArguments {
  std::string config;
  std::vector<std::string> overrides;
};

struct Inspected {
  Experiment experiment;
  DataSplits data;
  Shape input;
  std::unique_ptr<Module> model;
};

Inspected inspect(const InspectArguments& arguments) {
  Inspected result{load_experiment(arguments.config, arguments.overrides), {}, {}, nullptr};
  const ExperimentConfig& config = result.experiment.config;
  result.data = load_data(config.data, static_cast<std::uint64_t>(config.seed));
  result.input = result.data.train.dataset->batch_shape(1);
  result.model = build_model(config.model, result.input);
  initialize(*result.model, static_cast<std::uint64_t>(config.seed));
  return result;
}

void print_trace(const Trace& trace) {
  std::printf("%-32s %-16s %-20s %-20s %12s %14s\n", "layer", "kind", "input", "output", "parameters", "MACs");
  Cost total;
  for (const LayerCost& layer : trace) {
    std::printf("%-32s %-16s %-20s %-20s %12lld %14lld\n", layer.path.c_str(), layer.kind.c_str(), str(layer.input).c_str(),
                str(layer.output).c_str(), static_cast<long long>(layer.parameters), static_cast<long long>(layer.macs));
    total.parameters += layer.parameters;
    total.macs += layer.macs;
    total.weight_bytes += layer.weight_bytes;
  }
  std::printf("%-32s %-16s %-20s %-20s %12lld %14lld\n", "total", "", "", "", static_cast<long long>(total.parameters),
              static_cast<long long>(total.macs));
  std::printf("weights and buffers on disk: %.1f KiB\n", static_cast<double>(total.weight_bytes) / 1024.0);
}

Trace trace_of(const Module& model, const Shape& input) {
  Trace trace;
  model.output_shape(input, &trace);
  return trace;
}

int plan(const InspectArguments& arguments) {
  Inspected inspected = inspect(arguments);
  const ExperimentConfig& config = inspected.experiment.config;
  std::printf("data: %s, %lld training, %lld validation, %lld test samples of %s\n", config.data.name.c_str(),
              static_cast<long long>(inspected.data.train.size()), static_cast<long long>(inspected.data.val.size()),
              static_cast<long long>(inspected.data.test.size()), str(inspected.input).c_str());
  print_trace(trace_of(*inspected.model, inspected.input));
  const std::int64_t per_epoch = steps_per_epoch(config.data, inspected.data.train.size());
  for (const StageConfig& stage : config.stages) {
    std::printf("\nstage %s\n", stage.name.c_str());
    if (stage.factorise) {
      std::printf("factorise (ranks chosen here from the initial weights; a run chooses them from the trained ones):\n");
      FactorisePass pass(*stage.factorise);
      std::cout << summary(run_pass(inspected.model, pass, inspected.input)) << '\n';
      print_trace(trace_of(*inspected.model, inspected.input));
    }
    if (stage.train) {
      const std::int64_t steps = stage.train->resolve(per_epoch, 0);
      std::printf("train %s = %lld steps of %lld samples, %lld steps per epoch\n", to_string(*stage.train).c_str(),
                  static_cast<long long>(steps), static_cast<long long>(config.data.batch), static_cast<long long>(per_epoch));
    }
  }
  std::cout << "next: tessera train " << arguments.config << '\n';
  return kDone;
}

int layers(const InspectArguments& arguments) {
  const Inspected inspected = inspect(arguments);
  std::printf("%-32s %-16s %12s %14s  %s\n", "layer", "kind", "parameters", "MACs", "tucker2");
  for (const LayerCost& layer : trace_of(*inspected.model, inspected.input)) {
    const std::string reason = why_not_factorise(find_module(*inspected.model, layer.path));
    std::printf("%-32s %-16s %12lld %14lld  %s\n", layer.path.c_str(), layer.kind.c_str(),
                static_cast<long long>(layer.parameters), static_cast<long long>(layer.macs),
                reason.empty() ? "yes" : ("no: " + reason).c_str());
  }
  std::cout << "next: tessera train " << arguments.config << '\n';
  return kDone;
}

int validate(const InspectArguments& arguments) {
  check_experiment(load_experiment(arguments.config, arguments.overrides));
  std::cout << arguments.config << ": ok\nnext: tessera plan " << arguments.config << '\n';
  return kDone;
}

Value choices_of(const FieldSpec& spec) {
  Value choices = Value::list();
  for (const std::string_view choice : spec.choices) choices.as_list().push_back(std::string(choice));
  return choices;
}

Value row_of(const SchemaEntry& entry) {
  Value row = Value::map();
  row.set("key", entry.path);
  row.set("type", entry.type);
  row.set("default", entry.default_value);
  row.set("required", entry.spec.required);
  row.set("range", range_text(entry.spec.range));
  row.set("choices", choices_of(entry.spec));
  row.set("example", std::string(entry.spec.example));
  row.set("help", std::string(entry.spec.help));
  row.set("observable", std::string(entry.spec.observable));
  return row;
}

std::string line_of(const SchemaEntry& entry) {
  std::string text(entry.spec.help);
  if (const std::string range = range_text(entry.spec.range); !range.empty()) text += str("; ", range);
  if (!entry.spec.choices.empty()) text += "; one of:";
  for (const std::string_view choice : entry.spec.choices) text += str(' ', choice);
  if (!entry.spec.example.empty()) text += str("; e.g. ", entry.spec.example);
  return text.starts_with("; ") ? text.substr(2) : text;
}

int print_schema(bool json) {
  Value list = Value::list();
  for (const SchemaEntry& entry : schema<ExperimentConfig>()) {
    if (json) {
      list.as_list().push_back(row_of(entry));
      continue;
    }
    const std::string fallback = entry.spec.required ? "required" : "default " + entry.default_value;
    std::printf("%-44s %-18s %-24s %s\n", entry.path.c_str(), entry.type.c_str(), fallback.c_str(), line_of(entry).c_str());
  }
  if (json) std::cout << to_json(list, 2) << '\n';
  return kDone;
}

std::shared_ptr<InspectArguments> add_file_verb(CLI::App& app, CLI::App*& verb, const char* name, const char* help) {
  verb = app.add_subcommand(name, help);
  auto arguments = std::make_shared<InspectArguments>();
  verb->add_option("config", arguments->config, "experiment file")->required();
  verb->add_option("overrides", arguments->overrides, "key=value, as for train");
  verb->footer(str("Example: tessera ", name, " configs/quickstart.yaml"));
  return arguments;
}

}  // namespace

void add_plan(CLI::App& app, Run& run) {
  CLI::App* verb = nullptr;
  auto arguments = add_file_verb(app, verb, "plan", "Print shapes, parameters, MACs and schedules without training");
  verb->callback([arguments, &run] { run = [arguments] { return plan(*arguments); }; });
}

void add_layers(CLI::App& app, Run& run) {
  CLI::App* verb = nullptr;
  auto arguments = add_file_verb(app, verb, "layers", "List what may be compressed and how, and why not");
  verb->callback([arguments, &run] { run = [arguments] { return layers(*arguments); }; });
}

void add_validate(CLI::App& app, Run& run) {
  CLI::App* verb = nullptr;
  auto arguments = add_file_verb(app, verb, "validate", "Check an experiment file: all errors at once");
  verb->callback([arguments, &run] { run = [arguments] { return validate(*arguments); }; });
}

void add_schema(CLI::App& app, Run& run) {
  auto* verb = app.add_subcommand("schema", "List every key of an experiment file");
  auto json = std::make_shared<bool>(false);
  verb->add_flag("--json", *json, "for another program to read");
  verb->footer("Example: tessera schema | grep factorise");
  verb->callback([json, &run] { run = [json] { return print_schema(*json); }; });
}

}  // namespace tessera::cli
