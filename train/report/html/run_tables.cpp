#include "train/report/html/run_tables.h"

#include <algorithm>
#include <set>
#include <utility>

#include "compress/timing/speed.h"
#include "core/support/error.h"
#include "core/support/text.h"
#include "train/report/html/curves.h"

namespace tessera {
namespace {

HtmlCell scored_cell(const Metric& metric, const std::optional<double>& value) {
  return value ? HtmlCell{cell_of(metric, *value, 2), in_unit(metric, *value)} : HtmlCell{"-"};
}

HtmlCell millions(const std::optional<std::int64_t>& count) {
  return number_cell(count ? std::optional(static_cast<double>(*count) / 1e6) : std::nullopt, "%.2f");
}

HtmlCell kibibytes(const std::optional<std::int64_t>& bytes) {
  return number_cell(bytes ? std::optional(static_cast<double>(*bytes) / 1024) : std::nullopt, "%.0f");
}

void add_network(std::vector<HtmlCell>& cells, const SavedNetwork* network) {
  cells.push_back(count_cell(network ? std::optional(network->parameters) : std::nullopt));
  cells.push_back(millions(network ? std::optional(network->macs) : std::nullopt));
  cells.push_back(kibibytes(network ? std::optional(network->file_bytes) : std::nullopt));
}

// The time of a rewritten network: which stage rewrote it, and the pass that timed it.
struct TimedStage {
  std::size_t stage = 0;
  const PassReport* pass = nullptr;
};

// An ADMM pass that settles ranks leaves its network dense. Its time belongs to the later stage that factorises at these ranks.
std::vector<TimedStage> timed_stages(const RunHistory& history) {
  std::vector<TimedStage> timed;
  const PassReport* settled = nullptr;
  for (std::size_t i = 0; i < history.stages.size(); ++i) {
    for (const PassReport& pass : history.stages[i].passes) {
      if (pass.pass == "admm") {
        settled = pass.speed ? &pass : nullptr;
      } else if (pass.speed) {
        timed.push_back({i, &pass});
      } else if (pass.pass == "factorise" && settled != nullptr) {
        timed.push_back({i, std::exchange(settled, nullptr)});
      }
    }
  }
  return timed;
}

void add_speed(std::vector<HtmlCell>& cells, const PassReport* pass) {
  if (pass == nullptr) {
    cells.insert(cells.end(), {{"-"}, {"-"}, {"-"}});
    return;
  }
  const Speed& speed = *pass->speed;
  cells.push_back({str(formatted("%.4g", speed.dense_ms), " → ", formatted("%.4g", speed.compressed_ms)), speed.compressed_ms});
  cells.push_back({describe(speed.ratio), speed.ratio.median});
  cells.push_back({pass->timed_at});
}

const CurvePoint* best_of(const Metric& metric, const std::vector<CurvePoint>& points) {
  const CurvePoint* best = nullptr;
  for (const CurvePoint& point : points) {
    if (has_place(point.value) && (best == nullptr || metric.better(point.value, best->value))) best = &point;
  }
  return best;
}

HtmlCell best_cell(const Metric& metric, const std::vector<CurvePoint>& points) {
  const CurvePoint* const best = best_of(metric, points);
  if (best == nullptr) return {"-"};
  return {str(cell_of(metric, best->value, 2), " (step ", best->step, ")"), in_unit(metric, best->value)};
}

std::int64_t last_step(const ReportRun& run) { return run.stages.empty() ? 0 : run.stages.back().end; }

// Whether all runs of the page are judged by the same metric. Otherwise each run names its own.
bool judged_alike(std::span<const ReportRun> runs) {
  return std::ranges::all_of(runs, [&](const ReportRun& run) { return run.metric == runs.front().metric; });
}

// The ranks that ADMM held a layer to in a stage. The stage left the layer dense. Empty if ADMM did not hold it.
std::string held_ranks(const ReportRun& run, const std::string& stage, const std::string& path) {
  const auto record = std::ranges::find(run.history.stages, stage, &StageRecord::name);
  if (record == run.history.stages.end()) return {};
  for (const PassReport& pass : record->passes) {
    const auto layer = std::ranges::find(pass.layers, path, &LayerReport::path);
    if (pass.pass == "admm" && layer != pass.layers.end() && !layer->stays_dense() && layer->ranks)
      return to_string(*layer->ranks);
  }
  return {};
}

std::string state_text(const ReportRun& run, const SavedNetwork& network, const LayerState& layer) {
  std::string text = layer.form;
  const std::string held = held_ranks(run, network.stage, layer.path);
  if (!held.empty()) text += ", held to " + held;
  if (layer.sparsity > 0) text += str(", ", formatted("%.1f", 100 * layer.sparsity), " % zero");
  return text;
}

// Dense and compressed networks look like the baseline and the arms of a table.
ScatterPoint point_of(const std::string& name, bool dense, double ms, double y) {
  return {.name = name,
          .x = {.median = ms, .p10 = ms, .p90 = ms},
          .y = y,
          .kind = dense ? "baseline" : "arm",
          .shape = dense ? std::size_t{1} : 0};
}

TimedPicture& picture_at(std::vector<TimedPicture>& pictures, const Metric* metric, const std::string& x_label,
                         const std::string& split) {
  const auto same = [&](const TimedPicture& picture) { return picture.metric == metric && picture.scatter.x_label == x_label; };
  const auto found = std::ranges::find_if(pictures, same);
  if (found != pictures.end()) return *found;
  const bool fraction = metric->unit == Metric::Unit::fraction;
  TimedPicture& made = pictures.emplace_back();
  made.metric = metric;
  made.scatter.frame = {.width = 640, .height = 380, .top = 20};
  made.title = str(split, ' ', metric->key, " against ", x_label);
  made.scatter.x_label = x_label;
  made.scatter.y_label =
      str(split, ' ', metric->heading, fraction ? ", %" : "", metric->more_is_better ? " (more is better)" : " (less is better)");
  return made;
}

// The pictured metric at the end of a stage, in the unit that people read. The history has the task's first metric. Other metrics
// come from the line of metrics.jsonl that was written at that step.
std::optional<double> value_at(const ReportRun& run, const StageRecord& stage) {
  if (!stage.last) return std::nullopt;
  const Metric& metric = run.pictured();
  if (metric.key == run.metric->key) return in_unit(metric, stage.last->value);
  const RunSeries* const series = run.find(str("val_", metric.key));
  if (series == nullptr) return std::nullopt;
  const auto found = std::ranges::find(series->points, stage.end_step, &CurvePoint::step);
  return found == series->points.end() || !has_place(found->value) ? std::nullopt : std::optional(in_unit(metric, found->value));
}

// The value at the end of the stage, or of the next evaluated one if no pass rewrote the network in between.
std::optional<double> value_after(const ReportRun& run, std::size_t stage) {
  const std::vector<StageRecord>& stages = run.history.stages;
  for (std::size_t i = stage; i < stages.size() && (i == stage || stages[i].passes.empty()); ++i) {
    if (const std::optional<double> value = value_at(run, stages[i])) return value;
  }
  return std::nullopt;
}

// The last stage before this one that was evaluated.
const StageRecord* stage_before(const ReportRun& run, std::size_t stage) {
  for (std::size_t i = stage; i-- > 0;) {
    if (value_at(run, run.history.stages[i])) return &run.history.stages[i];
  }
  return nullptr;
}

}  // namespace

HtmlTable runs_table(std::span<const ReportRun> runs) {
  const bool alike = judged_alike(runs);
  const std::string judged = alike && !runs.empty() ? "val " + heading_of(*runs.front().metric) : std::string("val");
  HtmlTable table{.id = "runs-table", .caption = "Runs"};
  table.columns = {{"run"},
                   {"state"},
                   {"steps", true},
                   {judged + " at the end", true},
                   {"best " + judged + " of any stage", true},
                   {"parameters", true},
                   {"MMACs", true},
                   {"file KiB", true},
                   {"ms of a batch", true},
                   {"speed-up", true},
                   {"timed at"}};
  for (const ReportRun& run : runs) {
    const RunSeries* const scores = run.judged();
    const std::string metric = alike ? "" : str(" (", heading_of(*run.metric), ')');
    std::vector<HtmlCell> cells{{run.label + metric}, {run.state}, count_cell(last_step(run))};
    cells.push_back(scored_cell(*run.metric, scores ? std::optional(scores->points.back().value) : std::nullopt));
    cells.push_back(scores ? best_cell(*run.metric, scores->points) : HtmlCell{"-"});
    add_network(cells, run.networks.empty() ? nullptr : &run.networks.back());
    const std::vector<TimedStage> timed = timed_stages(run.history);
    add_speed(cells, timed.empty() ? nullptr : timed.back().pass);
    table.rows.push_back(std::move(cells));
  }
  return table;
}

HtmlTable stages_table(const ReportRun& run, const std::string& id) {
  const std::string judged = "val " + heading_of(*run.metric);
  HtmlTable table{.id = id, .caption = str("Stages of ", run.label)};
  table.columns = {{"stage"},       {"steps", true},          {"ends at step", true},  {"train loss", true},
                   {judged, true},  {"best " + judged, true}, {"sparsity %", true},    {"parameters", true},
                   {"MMACs", true}, {"file KiB", true},       {"ms of a batch", true}, {"speed-up", true},
                   {"timed at"}};
  const std::vector<TimedStage> timed = timed_stages(run.history);
  for (const StageRecord& stage : run.history.stages) {
    if (!stage.done) continue;
    const auto value = [](const std::optional<Scored>& scored) { return scored ? std::optional(scored->value) : std::nullopt; };
    std::vector<HtmlCell> cells{{stage.name},
                                count_cell(stage.steps),
                                count_cell(stage.end_step),
                                number_cell(stage.loss, "%.6g"),
                                scored_cell(*run.metric, value(stage.last)),
                                scored_cell(*run.metric, value(stage.best))};
    cells.push_back(number_cell(stage.sparsity ? std::optional(100 * *stage.sparsity) : std::nullopt, "%.2f"));
    const auto network =
        std::ranges::find_if(run.networks, [&](const SavedNetwork& each) { return each.stage_done && each.stage == stage.name; });
    add_network(cells, network == run.networks.end() ? nullptr : &*network);
    const auto of_stage = [&](const TimedStage& each) { return &run.history.stages[each.stage] == &stage; };
    const auto found = std::ranges::find_if(timed, of_stage);
    add_speed(cells, found == timed.end() ? nullptr : found->pass);
    table.rows.push_back(std::move(cells));
  }
  return table;
}

HtmlTable states_table(const ReportRun& run, const std::string& id) {
  HtmlTable table{.id = id, .caption = str("Ranks and sparsity of layers of ", run.label, ", at the ends of stages")};
  table.columns = {{"layer"}};
  std::vector<std::string> paths;
  for (const SavedNetwork& network : run.networks) {
    if (network.stage_done) table.columns.push_back({network.stage});
    for (const LayerState& layer : network.layers) {
      if (std::ranges::find(paths, layer.path) == paths.end()) paths.push_back(layer.path);
    }
  }
  for (const std::string& path : paths) {
    std::vector<HtmlCell> cells{{path}};
    bool told = false;
    for (const SavedNetwork& network : run.networks) {
      if (!network.stage_done) continue;
      const auto layer = std::ranges::find(network.layers, path, &LayerState::path);
      const bool there = layer != network.layers.end();
      cells.push_back({there ? state_text(run, network, *layer) : "-"});
      told |= there && cells.back().text != "dense";
    }
    if (told) table.rows.push_back(std::move(cells));
  }
  return table;
}

std::string decision_text(const LayerLine& layer) {
  if (layer.decision == kDense) return layer.reason.empty() ? "stays dense" : "stays dense: " + layer.reason;
  return str(layer.decision, layer.format.empty() ? "" : " as ", layer.format, layer.ranks.empty() ? "" : ", ", layer.ranks,
             layer.reason.empty() ? "" : "; ", layer.reason);
}

HtmlTable layers_table(const ReportRun& run, const std::string& stage, const std::string& id) {
  HtmlTable table{.id = id, .caption = str("Layers of ", run.label, ", stage ", stage)};
  table.columns = {{"layer"},
                   {"decision"},
                   {"parameters dense", true},
                   {"compressed", true},
                   {"MACs dense", true},
                   {"compressed", true},
                   {"ms dense", true},
                   {"compressed", true},
                   {"speed-up (95 % interval)", true}};
  for (const LayerLine& layer : run.layers) {
    if (layer.stage != stage) continue;
    HtmlCell speedup{"-"};
    if (layer.speedup) {
      speedup = {
          describe({*layer.speedup, layer.speedup_low.value_or(*layer.speedup), layer.speedup_high.value_or(*layer.speedup)}),
          layer.speedup};
    }
    table.rows.push_back({{layer.path},
                          {decision_text(layer)},
                          count_cell(layer.parameters_before),
                          count_cell(layer.parameters_after),
                          count_cell(layer.macs_before),
                          count_cell(layer.macs_after),
                          number_cell(layer.dense_ms, "%.4g"),
                          number_cell(layer.compressed_ms, "%.4g"),
                          speedup});
  }
  return table;
}

std::vector<TimedPicture> pictures_of(std::span<const ReportRun> runs) {
  std::vector<TimedPicture> pictures;
  for (const ReportRun& run : runs) {
    const auto named = [&](const StageRecord& stage) { return str(run.label, ": ", stage.name); };
    std::set<std::string> begun;  // ways of timing that have the dense network's point
    for (const auto& [stage, pass] : timed_stages(run.history)) {
      const std::string label = str("milliseconds at ", pass->timed_at);
      const StageRecord* const before = stage_before(run, stage);
      const std::optional<double> after = value_after(run, stage);
      if (before == nullptr && !after) continue;
      std::vector<ScatterPoint>& points = picture_at(pictures, &run.pictured(), label, "val").scatter.points;
      if (before != nullptr && begun.insert(label).second)
        points.push_back(point_of(named(*before), true, pass->speed->dense_ms, *value_at(run, *before)));
      if (after) points.push_back(point_of(named(run.history.stages[stage]), false, pass->speed->compressed_ms, *after));
    }
  }
  return pictures;
}

std::vector<TimedPicture> pictures_of(const ResultTable& results) {
  std::vector<TimedPicture> pictures;
  for (const ResultRow& row : results.rows) {
    if (!row.value) continue;
    for (const TimedResult& timed : row.times) {
      const std::string label = str("milliseconds at ", timed.at, results.timed_on.empty() ? "" : ", ", results.timed_on);
      picture_at(pictures, results.metric, label, "test")
          .scatter.points.push_back({.name = row.name,
                                     .x = timed.time,
                                     .y = in_unit(*results.metric, *row.value),
                                     .half = in_unit(*results.metric, row.deviation.value_or(0)),
                                     .kind = row.baseline ? "baseline" : "arm",
                                     .shape = row.baseline ? std::size_t{1} : 0});
    }
  }
  return pictures;
}

}  // namespace tessera
