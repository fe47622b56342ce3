#include "compress/pass_runner.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <map>
#include <optional>

#include "compress/recalibrate.h"
#include "core/finite.h"
#include "core/support/error.h"

namespace tessera {

namespace {

using Costs = std::map<std::string, LayerCost>;

Costs by_path(const Trace& trace) {
  Costs costs;
  for (const LayerCost& row : trace) costs.emplace(row.path, row);
  return costs;
}

void verify(std::string_view pass, const Module& before, Module& after, const LayerCost& cost) {
  for (const NamedParameter& entry : named_parameters(after)) {
    TESSERA_CHECK(all_finite(entry.parameter->value()), NumericError, "pass '", pass, "': ", join_path(before.path(), entry.path),
                  " contains NaN or Inf after the rewrite; the dense layer is kept");
  }
  const Shape output = after.output_shape(cost.input);
  TESSERA_CHECK(output == cost.output, InternalError, "pass '", pass, "': layer '", before.path(), "' gives ", cost.output,
                " for input ", cost.input, ", its replacement gives ", output);
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
    row.decision = std::string(pass.done());
    LayerVerdict verdict;
    if (veto) verdict = veto->judge(before, *after, cost.input, first);
    row.speed = verdict.speed;
    if (row.speed) row.phase = name_of(veto->phase());
    if (verdict.stays) {
      row.reason = std::move(verdict.reason);
      replaced.push_back({cost.path, replace_module(root, cost.path, std::move(after)), verdict.speed});
    } else {
      row.stay_dense(std::move(verdict.reason));
    }
  }
  report.layers.push_back(std::move(row));
}

void verify(std::string_view pass, Module& after) {
  for (const NamedParameter& entry : named_parameters(after)) {
    TESSERA_CHECK(all_finite(entry.parameter->value()), NumericError, "pass '", pass, "': ", entry.path,
                  " contains NaN or Inf after the rewrite; the network is kept");
  }
}

void rewrite_whole(std::unique_ptr<Module>& root, const Pass& pass, const Shape& input, const Costs& costs, PassReport& report,
                   std::vector<Replaced>& replaced) {
  const auto start = std::chrono::steady_clock::now();
  std::unique_ptr<Module> after = pass.rewrite_network(*root, report.layers);
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  Trace trace;
  (after ? *after : *root).output_shape(input, &trace);
  const Costs reached = by_path(trace);
  for (LayerReport& row : report.layers) {
    const LayerCost& before = costs.at(row.path);
    const LayerCost& now = reached.at(row.path);
    row.kind_before = before.kind;
    row.kind_after = now.kind;
    row.parameters_before = before.parameters;
    row.parameters_after = now.parameters;
    row.macs_before = before.macs;
    row.macs_after = now.macs;
    row.seconds = seconds / static_cast<double>(report.layers.size());
  }
  if (!after) return;
  verify(pass.name(), *after);
  move_to(*after, device_of(*root));
  replaced.push_back({"", replace_module(root, "", std::move(after))});
}

// Applies the verdict of the network's time to the layers that are in it.
void settle(std::unique_ptr<Module>& root, const Veto& veto, std::vector<Replaced>& replaced, const Shape& input,
            PassReport& report) {
  const NetworkVerdict verdict = veto.settle(root, replaced, input);
  report.speed = verdict.speed;
  if (report.speed) report.timed_at = veto.where(input);
  report.other_phases = veto.other_speeds(root, replaced, input);
  for (const std::string& path : verdict.went_back) {
    for (LayerReport& row : report.layers) {
      if (!row.stays_dense() && (row.path == path || path.empty())) row.stay_dense(verdict.reason);
    }
  }
  for (LayerReport& row : report.layers) {
    if (!row.speed || !verdict.dense_ms) continue;
    row.network_share = std::round(1e4 * row.speed->dense_ms / *verdict.dense_ms) / 1e4;  // the times have four digits
  }
}

}  // namespace

PassReport run_pass(std::unique_ptr<Module>& root, Pass& pass, const Shape& input, const Veto* veto,
                    const TrainingBatches* batches) {
  const std::optional<Veto> here = veto ? std::optional(veto->for_layers_of(*root)) : std::nullopt;
  const Veto* const clock = here ? &*here : nullptr;
  PassReport report;
  report.pass = pass.name();
  report.before = total_cost(*root, input);
  Trace trace;
  const Shape output = root->output_shape(input, &trace);
  const Costs costs = by_path(trace);
  const std::string first = first_with_parameters(trace);
  std::vector<Replaced> replaced;
  pass.prepare(root, input, {.batches = batches, .veto = clock});
  rewrite_whole(root, pass, input, costs, report, replaced);
  for (const std::string& path : matched_paths(*root, pass)) {
    const auto cost = costs.find(path);
    TESSERA_CHECK(cost != costs.end(), InternalError, "pass '", pass.name(), "': '", path, "' matches but is not in the trace");
    rewrite_layer(root, pass, cost->second, path == first, clock, report, replaced);
  }
  if (here) settle(root, *here, replaced, input, report);
  if (batches != nullptr && !replaced.empty() && recalibrate(*root, *batches, pass.recalibration())) {
    report.recalibrated = pass.recalibration();
  }
  pass.complete(report);
  report.after = total_cost(*root, input);
  const Shape reached = root->output_shape(input);
  TESSERA_CHECK(reached == output, InternalError, "pass '", pass.name(), "': the model gave ", output, " for input ", input,
                ", it gives ", reached);
  return report;
}

}  // namespace tessera
