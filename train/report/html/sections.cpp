#include "train/report/html/sections.h"

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "core/support/error.h"
#include "core/support/text.h"
#include "train/report/html/run_tables.h"
#include "train/report/plot/markup.h"

namespace tessera {
namespace {

// Titles of the numbers that runs log. The title of any other number is its key.
constexpr std::array<std::pair<std::string_view, std::string_view>, 11> kTitles{
    {{"loss", "Training loss"},
     {"val_loss", "Loss on val"},
     {"lr", "Learning rate"},
     {"samples_per_second", "Samples per second"},
     {"admm.rho", "ADMM: rho"},
     {"admm.primal", "ADMM: primal residual"},
     {"admm.dual", "ADMM: dual residual"},
     {"admm.relative", "ADMM: relative residual of the worst layer"},
     {"prune.sparsity", "Pruning: sparsity"},
     {"prune.asked", "Pruning: sparsity asked for"},
     {"rigl.moved", "RigL: weights moved"}}};

// The most wanted numbers come first. The rest follows in the order in which it was logged.
int rank_of(const std::string& key) {
  if (key == "loss") return 0;
  if (key.starts_with("val_")) return 1;
  if (key == "lr") return 2;
  return key == "samples_per_second" ? 4 : 3;
}

std::vector<std::string> keys_of(std::span<const ReportRun> runs) {
  std::vector<std::string> keys;
  for (const ReportRun& run : runs) {
    for (const RunSeries& series : run.series) {
      if (std::ranges::find(keys, series.key) == keys.end()) keys.push_back(series.key);
    }
  }
  std::ranges::stable_sort(keys, {}, rank_of);
  return keys;
}

// The metric of the run's task whose key is `key` without "val_"; null for other numbers.
const Metric* metric_of_key(const ReportRun& run, const std::string& key) {
  const auto found = std::ranges::find_if(run.metrics, [&](const Metric& metric) { return key == str("val_", metric.key); });
  return found == run.metrics.end() ? nullptr : &*found;
}

// All charts of a page cover the same steps, so that they can be compared.
std::optional<std::pair<std::int64_t, std::int64_t>> steps_of(std::span<const ReportRun> runs) {
  std::optional<std::pair<std::int64_t, std::int64_t>> steps;
  for (const ReportRun& run : runs) {
    for (const RunSeries& series : run.series) {
      for (const CurvePoint& point : series.points) {
        if (!steps) steps = {point.step, point.step};
        steps->first = std::min(steps->first, point.step);
        steps->second = std::max(steps->second, point.step);
      }
    }
  }
  return steps;
}

CurveChart chart_of(std::span<const ReportRun> runs, const std::string& key, std::size_t number) {
  CurveChart chart{.id = str("curve-", number), .title = key, .steps = steps_of(runs)};
  const auto titled = std::ranges::find_if(kTitles, [&](const auto& entry) { return entry.first == key; });
  if (titled != kTitles.end()) chart.title = titled->second;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const RunSeries* const series = runs[i].find(key);
    if (series == nullptr) continue;
    Curve curve{.name = runs[i].label, .series = i, .points = series->points, .stages = runs[i].stages};
    if (const Metric* const metric = metric_of_key(runs[i], key)) {
      chart.title = str(metric->key, " on val");
      chart.unit = metric->unit == Metric::Unit::fraction ? "%" : "";
      for (CurvePoint& point : curve.points) point.value = in_unit(*metric, point.value);
    }
    chart.curves.push_back(std::move(curve));
  }
  return chart;
}

std::string legend_item(const std::string& name, std::size_t series) {
  Drawing sample({.width = 56, .height = 16, .left = 0, .right = 0, .top = 0, .bottom = 0}, {}, {});
  const std::array<Place, 2> ends{Place{2, 8}, Place{54, 8}};
  sample.path(ends, "curve " + series_class(series));
  sample.marker({28, 8}, series, "mark " + series_class(series));
  return str("<li>", sample.in_page(str("legend-", series), name, "line and mark of this run"), escaped(name), "</li>\n");
}

std::string pictures_html(const std::vector<TimedPicture>& pictures, const std::string& id) {
  std::string text;
  for (std::size_t i = 0; i < pictures.size(); ++i) {
    const auto& [title, scatter, metric] = pictures[i];
    std::string description = scatter.x_label + ".";
    for (const ScatterPoint& point : scatter.points)
      description += str(' ', point.name, ": ", formatted("%.4g", point.y), " at ", formatted("%.4g", point.x.median), " ms.");
    text +=
        str("<figure>\n<figcaption>", escaped(title), "</figcaption>\n",
            scroll_frame(title, draw_with_front(scatter, metric->more_is_better).in_page(str(id, '-', i), title, description)),
            "</figure>\n");
  }
  return text.empty() ? text : str("<div class=\"charts\">\n", text, "</div>\n");
}

std::vector<BarPair> bars_of(const ReportRun& run, const std::string& stage, bool time) {
  std::vector<BarPair> pairs;
  for (const LayerLine& layer : run.layers) {
    if (layer.stage != stage) continue;
    if (!time) {
      pairs.push_back({layer.path, static_cast<double>(layer.parameters_before), static_cast<double>(layer.parameters_after)});
    } else if (layer.dense_ms) {
      // If the layer stayed dense, the time of the rejected form is not shown.
      pairs.push_back({layer.path, layer.dense_ms, layer.decision == kDense ? std::nullopt : layer.compressed_ms});
    }
  }
  return pairs;
}

std::string commands_of(const std::string& what, const std::string& commands) {
  return str("<h3>", escaped(what), "</h3>\n", text_frame("Commands: " + what, commands));
}

std::vector<std::string> stages_with_layers(const ReportRun& run) {
  std::vector<std::string> stages;
  for (const LayerLine& layer : run.layers) {
    if (std::ranges::find(stages, layer.stage) == stages.end()) stages.push_back(layer.stage);
  }
  return stages;
}

}  // namespace

std::string summary_html(const ReportSources& sources) {
  std::string text;
  if (!sources.runs.empty()) {
    text += to_html(runs_table(sources.runs));
    text +=
        "<p class=\"note\">Metrics are on the val split, as the runs logged them; times are those that decided which layers "
        "stay compressed, speed-ups with their 95 % interval.</p>\n";
  }
  for (std::size_t i = 0; i < sources.tables.size(); ++i) {
    const ResultTable& table = sources.tables[i];
    text += to_html(to_table(table, str("table-", i)));
    if (!table.timed_on.empty()) text += str("<p class=\"note\">Timed on ", escaped(table.timed_on), ".</p>\n");
    std::string answers;
    for (const std::string& answer : table.answers) answers += str("<li>", escaped(answer), "</li>\n");
    if (!answers.empty()) text += str("<ul>\n", answers, "</ul>\n");
  }
  return text;
}

std::string all_curves_html(std::span<const ReportRun> runs) {
  if (runs.empty()) return {};
  std::string legend, charts;
  for (std::size_t i = 0; i < runs.size(); ++i) legend += legend_item(runs[i].label, i);
  std::string text = str("<ul class=\"legend\">\n", legend, "</ul>\n");
  for (const ReportRun& run : runs) {
    if (run.series.empty()) text += str("<p>", escaped(run.label), " has logged no number yet.</p>\n");
  }
  const std::vector<std::string> keys = keys_of(runs);
  for (std::size_t i = 0; i < keys.size(); ++i) charts += curves_html(chart_of(runs, keys[i], i));
  return charts.empty() ? text : str(text, "<div class=\"charts\">\n", charts, "</div>\n");
}

std::string speed_html(const ReportSources& sources) {
  std::string text = pictures_html(pictures_of(sources.runs), "speed");
  for (std::size_t i = 0; i < sources.tables.size(); ++i)
    text += pictures_html(pictures_of(sources.tables[i]), str("speed-table-", i));
  if (text.empty()) return text;
  return "<p class=\"note\">The dashed line is the Pareto front: networks on it are beaten by none that is as fast. Squares "
         "are dense networks and baselines, circles the others. Bars reach from the tenth to the ninetieth percentile, and one "
         "standard deviation up and down, where they are known.</p>\n" +
         text;
}

std::string layers_html(std::span<const ReportRun> runs) {
  std::string text;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const std::vector<std::string> stages = stages_with_layers(runs[i]);
    for (std::size_t s = 0; s < stages.size(); ++s) {
      const std::string id = str("layers-", i, '-', s);
      text += str("<h3>", escaped(runs[i].label), ": ", escaped(stages[s]), "</h3>\n<div class=\"charts\">\n",
                  bars_html({id + "-parameters", "Parameters of layers", "", bars_of(runs[i], stages[s], false)}),
                  bars_html({id + "-time", "Time of layers alone", "ms", bars_of(runs[i], stages[s], true)}), "</div>\n",
                  to_html(layers_table(runs[i], stages[s], id)));
    }
  }
  return text;
}

std::string stages_html(std::span<const ReportRun> runs) {
  std::string text;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    for (const HtmlTable& table : {stages_table(runs[i], str("stages-", i)), states_table(runs[i], str("states-", i))})
      if (!table.rows.empty()) text += to_html(table);
  }
  return text;
}

std::string settings_html(const ReportSources& sources) {
  std::string text;
  for (const ReportRun& run : sources.runs) {
    const std::string caption = "Environment of " + run.label;
    std::string rows;
    for (const Value::Entry& entry : run.environment) {
      const std::string value = entry.value.is_string() ? entry.value.as_string() : to_json(entry.value);
      rows += str("<tr><th scope=\"row\">", escaped(entry.key), "</th><td>", escaped(value), "</td></tr>\n");
    }
    text +=
        str("<details><summary>", escaped(run.label), ": config.resolved.yaml</summary>\n",
            text_frame("Settings of " + run.label, run.settings), "</details>\n<details><summary>", escaped(run.label),
            ": env.json</summary>\n",
            scroll_frame(caption, str("<table>\n<caption>", escaped(caption), "</caption>\n", rows, "</table>")), "</details>\n");
  }
  for (std::size_t i = 0; i < sources.tables.size(); ++i) {
    const ResultTable& table = sources.tables[i];
    for (const HtmlTable& each : {settings_table(table, str("settings-", i)), machines_table(table, str("machines-", i))})
      if (!each.rows.empty()) text += to_html(each);
  }
  return text;
}

std::string commands_html(const ReportSources& sources, const std::string& command) {
  std::string text;
  for (const ReportRun& run : sources.runs) {
    const std::string path = shell_word(run.path);
    text += commands_of(
        run.label, str("tessera train ", shell_word(run.path + "/config.resolved.yaml"),
                       "  # the same settings in a new run\ntessera resume ", path, "  # go on with this one\ntessera table ",
                       path, "  # its networks on the test split and on the clock\n"));
    std::string notes;
    for (const std::string& note : run.notes) notes += str("<li>", escaped(note), "</li>\n");
    if (!notes.empty()) text += str("<p>It was:</p>\n<ul>\n", notes, "</ul>\n");
  }
  for (const ResultTable& table : sources.tables) {
    if (table.command.empty()) continue;
    text += commands_of(table.name, str(table.command, " --dry-run  # what would run, and how long it may take\n", table.command,
                                        "  # run what has no result, and write the table\n"));
  }
  return text + commands_of("This page", command + "\n");
}

}  // namespace tessera
