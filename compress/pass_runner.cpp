#include "compress/pass_runner.h"

#include <algorithm>
#include <chrono>
#include <map>

#include "core/finite.h"
#include "core/support/error.h"

namespace tessera {

namespace {

using Costs = std::map<std::string, LayerCost>;

Costs trace_by_path(const Module& root, const Shape& input) {
  Trace trace;
  root.output_shape(input, &trace);
  Costs costs;
  for (const LayerCost& row : trace) costs.emplace(row.path, row);
  return costs;
}

std::string first_with_parameters(const Module& root, const Shape& input) {
  Trace trace;
  root.output_shape(input, &trace);
  const auto found = std::ranges::find_if(trace, [](const LayerCost& row) { return row.parameters > 0; });
  return found == trace.end() ? std::string() : found->path;
}

void verify(std::string_view pass, const Module& before, const Module& after, const LayerCost& cost) {
  for (const auto& parameter : after.parameters()) {
    TESSERA_CHECK(all_finite(parameter->value()), NumericError, "pass '", pass,
                  "': ", join_path(before.path(), parameter->name()),
                  " contains NaN or Inf after the rewrite; the dense layer is kept");
  }
  const Shape output = after.output_shape(cost.input);
  TESSERA_CHECK(output == cost.output, InternalError, "pass '", pass, "': layer '", before.path(), "' gives ", cost.output,
                " for input ", cost.input, ", its replacement gives ", output);
}

const Parameter* find_parameter(const Module& module, std::string_view name) {
  for (const auto& parameter : module.parameters()) {
    if (parameter->name() == name) return parameter.get();
  }
  return nullptr;
}

// A parameter survives a rewrite when its name and shape do: a bias does, a factored weight does not.
void append_changes(const std::string& layer, const Module& before, const Module& after, std::vector<ModelChange>& changes) {
  for (const auto& parameter : before.parameters()) {
    const std::string path = join_path(layer, parameter->name());
    const Parameter* same = find_parameter(after, parameter->name());
    const bool survives = same != nullptr && same->value().shape() == parameter->value().shape();
    changes.push_back({path, survives ? path : ""});
  }
}

std::vector<std::string> matched_paths(Module& root, const Pass& pass) {
  std::vector<std::string> paths;
  for_each_module(root, [&](Module& module) {
    if (pass.matches(module.path(), module)) paths.push_back(module.path());
  });
  return paths;
}

void rewrite_layer(std::unique_ptr<Module>& root, const Pass& pass, const LayerCost& cost, bool first, const Veto* veto,
                   PassReport& report, std::vector<Replaced>& replaced) {
  Module& before = find_module(*root, cost.path);
  LayerReport row;
  row.path = cost.path;
  row.kind_before = row.kind_after = cost.kind;
  row.parameters_before = row.parameters_after = cost.parameters;
  row.macs_before = row.macs_after = cost.macs;

  const auto start = std::chrono::steady_clock::now();
  std::unique_ptr<Module> after = pass.rewrite(before, row);
  row.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  if (after) {
    move_to(*after, device_of(before));
    verify(pass.name(), before, *after, cost);
    const Cost reached = total_cost(*after, cost.input);
    row.kind_after = after->kind();
    row.parameters_after = reached.parameters;
    row.macs_after = reached.macs;
    if (!veto || veto->keeps(before, *after, cost.input, first, row)) {
      replaced.push_back({cost.path, replace_module(root, cost.path, std::move(after))});
    } else {
      row.stay_dense(std::move(row.reason));
    }
  }
  report.layers.push_back(std::move(row));
}

}  // namespace

void LayerReport::stay_dense(std::string why) {
  kind_after = kind_before;
  parameters_after = parameters_before;
  macs_after = macs_before;
  ranks.reset();
  relative_error = 0;
  decision = Decision::dense;
  reason = std::move(why);
}

void LayerReport::fields(Fields& f) {
  f.add("path", path, {.help = "dotted path"});
  f.add("kind_before", kind_before, {.help = "module kind"});
  f.add("kind_after", kind_after, {.help = "module kind"});
  f.add("format", format, {.help = "form of the factored weight"});
  f.add("ranks_asked", ranks_asked, {.help = "as the experiment file says"});
  std::optional<std::int64_t> out = ranks ? std::optional(ranks->out) : std::nullopt;
  std::optional<std::int64_t> in = ranks ? std::optional(ranks->in) : std::nullopt;
  f.add("rank_out", out, {.help = "output rank reached"});
  f.add("rank_in", in, {.help = "input rank reached"});
  ranks = out && in ? std::optional(Tucker2Ranks{*out, *in}) : std::nullopt;
  f.add("relative_error", relative_error, {.help = "of the weight"});
  f.add("parameters_before", parameters_before, {.help = "of the layer"});
  f.add("parameters_after", parameters_after, {.help = "of the layer"});
  f.add("macs_before", macs_before, {.help = "per sample"});
  f.add("macs_after", macs_after, {.help = "per sample"});
  std::string text(name_of(decision));
  f.add("decision", text, {.help = "what became of it", .choices = {"dense", "factored"}});
  decision = text == "factored" ? Decision::factored : Decision::dense;
  f.add("reason", reason, {.help = "why it stays dense, or that it is not faster"});
  f.add("speed", speed, {.help = "as timed beside its dense original"});
  f.add("network_share", network_share, {.help = "of the dense network's time"});
}

void PassReport::fields(Fields& f) {
  f.add("pass", pass, {.help = "its name"});
  f.add("layers", layers, {.help = "matched layers"});
  f.add("parameters_before", before.parameters, {.help = "of the network"});
  f.add("parameters_after", after.parameters, {.help = "of the network"});
  f.add("macs_before", before.macs, {.help = "of the network, per sample"});
  f.add("macs_after", after.macs, {.help = "of the network, per sample"});
  f.add("weight_bytes_before", before.weight_bytes, {.help = "of the network"});
  f.add("weight_bytes_after", after.weight_bytes, {.help = "of the network"});
  f.add("speed", speed, {.help = "of the network after the pass, over the one before"});
  f.add("timed_at", timed_at, {.help = "batch, phase and threads"});
}

PassReport run_pass(std::unique_ptr<Module>& root, Pass& pass, const Shape& input, const Veto* veto) {
  PassReport report;
  report.pass = pass.name();
  report.before = total_cost(*root, input);
  const Shape output = root->output_shape(input);
  const Costs costs = trace_by_path(*root, input);
  const std::string first = first_with_parameters(*root, input);
  std::vector<Replaced> replaced;
  pass.prepare(*root, input);
  for (const std::string& path : matched_paths(*root, pass)) {
    const auto cost = costs.find(path);
    TESSERA_CHECK(cost != costs.end(), InternalError, "pass '", pass.name(), "': '", path, "' matches but is not in the trace");
    rewrite_layer(root, pass, cost->second, path == first, veto, report, replaced);
  }
  if (veto) {
    report.speed = veto->settle(root, replaced, report.layers, input);
    if (report.speed) report.timed_at = veto->where();
  }
  for (const Replaced& layer : replaced) append_changes(layer.path, *layer.dense, find_module(*root, layer.path), report.changes);
  report.after = total_cost(*root, input);
  const Shape reached = root->output_shape(input);
  TESSERA_CHECK(reached == output, InternalError, "pass '", pass.name(), "': the model gave ", output, " for input ", input,
                ", it gives ", reached);
  return report;
}

}  // namespace tessera
