#include "train/run/history.h"

#include <algorithm>

#include "compress/report.h"
#include "core/support/error.h"
#include "core/support/text.h"

namespace tessera {
namespace {

std::string stage_row(const StageRecord& stage, const Metric& metric, bool sparse) {
  const auto shown = [&](const std::optional<Scored>& scored) {
    return scored ? text_of(metric, scored->value) : std::string("-");
  };
  const std::string loss = stage.loss ? formatted("%.6g", *stage.loss) : std::string("-");
  std::string best = shown(stage.best);
  if (stage.best_step) best += str(" (step ", *stage.best_step, ')');
  const std::string sparsity = stage.sparsity ? percent(*stage.sparsity) : std::string("-");
  return str("| ", markdown_cell(stage.name), " | ", stage.steps, " | ", stage.end_step, " | ", loss, " | ", shown(stage.last),
             " | ", best, sparse ? str(" | ", sparsity) : "", " |\n");
}

// Whether the stage fills the sparsity column. The table has the column if any stage does.
bool is_pruned(const StageRecord& stage) { return stage.done && stage.sparsity; }

}  // namespace

void StageRecord::fields(Fields& f) {
  f.add("name", name, {.help = "stage name"});
  f.add("done", done, {.help = "the stage's last step is done"});
  f.add("steps", steps, {.help = "training steps of the stage", .range = non_negative});
  f.add("end_step", end_step, {.help = "steps of the run at its end", .range = non_negative});
  f.add("loss", loss, {.help = "mean training loss of its last logged interval"});
  add_scored(f, "", last, {.help = "on val, at its end"});
  add_scored(f, "best_", best, {.help = "best on val"});
  f.add("best_step", best_step, {.help = "where it was reached"});
  f.add("sparsity", sparsity, {.help = "share of the network's weights that pruning has made zero at its end"});
  f.add("passes", passes, {.help = "what the stage's passes did"});
}

void RunHistory::fields(Fields& f) { f.add("stages", stages, {.help = "stages begun"}); }

StageRecord& RunHistory::of(const std::string& stage) {
  if (stages.empty() || stages.back().name != stage) stages.emplace_back().name = stage;
  return stages.back();
}

bool RunHistory::any_done() const {
  return std::any_of(stages.begin(), stages.end(), [](const StageRecord& stage) { return stage.done; });
}

bool has_layers(const RunHistory& history) {
  return std::any_of(history.stages.begin(), history.stages.end(),
                     [](const StageRecord& stage) { return !stage.passes.empty(); });
}

std::string layers_csv(const RunHistory& history) {
  std::string csv = layers_csv_header();
  for (const StageRecord& stage : history.stages) {
    for (const PassReport& pass : stage.passes) csv += layers_csv_rows(stage.name, pass.layers);
  }
  return csv;
}

std::string report_markdown(const std::string& name, std::int64_t seed, const Metric& metric, const RunHistory& history) {
  const bool sparse = std::ranges::any_of(history.stages, is_pruned);
  std::string text = str("# ", name, "\n\nSeed ", seed, ". In this folder:\n\n```sh\n",
                         "tessera resume .   # go on with the run\n"
                         "tessera table .    # test ",
                         metric.key,
                         ", size and speed of its stages\n```\n\n"
                         "## Stages\n\n"
                         "| stage | steps | ends at step | train loss | val ",
                         metric.key, " | best val ", metric.key, " |", sparse ? " sparsity |" : "",
                         "\n|---|---:|---:|---:|---:|---:|", sparse ? "---:|\n" : "\n");
  for (const StageRecord& stage : history.stages) {
    if (stage.done) text += stage_row(stage, metric, sparse);
  }
  for (const StageRecord& stage : history.stages) {
    if (!stage.done) continue;
    for (const PassReport& pass : stage.passes) text += str("\n## ", stage.name, ": ", pass.pass, "\n\n", pass_markdown(pass));
  }
  return text;
}

}  // namespace tessera
