#include "train/report/html/result_table.h"

#include <algorithm>
#include <filesystem>
#include <utility>

#include "core/config/value.h"
#include "core/support/error.h"
#include "core/support/text.h"
#include "train/report/statistics.h"
#include "train/tasks/builtin.h"

namespace tessera {
namespace {

template <class T>
std::optional<T> optional_at(const Value& map, std::string_view key) {
  const Value* const value = map.find(key);
  if (value == nullptr || value->is_null()) return std::nullopt;
  if constexpr (std::is_same_v<T, double>) {
    return value->as_double();
  } else if constexpr (std::is_same_v<T, std::string>) {
    return value->as_string();
  } else {
    return value->as_int();
  }
}

Summary summary_of(const Value& value) {
  return {value.at("median").as_double(), value.at("p10").as_double(), value.at("p90").as_double()};
}

std::vector<TimedResult> times_of(const Value& list) {
  std::vector<TimedResult> times;
  for (const Value& each : list.as_list()) {
    const Value* const phase = each.find("phase");  // missing in tables of older programs, which timed inference only
    TimedResult timed{.at = str("batch ", each.at("batch").as_int(), ", ", phase ? phase->as_string() : "inference"),
                      .time = summary_of(each.at("ms"))};
    const Value* const speedup = each.find("speedup");
    if (speedup != nullptr && speedup->is_map()) timed.speedup = summary_of(*speedup);
    timed.of_medians = optional_at<double>(each, "of_medians");
    times.push_back(std::move(timed));
  }
  return times;
}

// The first metric of a task for which the row has a column.
const Metric* metric_in(const Value& row) {
  for (const Task* task : builtin_tasks()) {
    const Metric& metric = task->metrics().front();
    if (optional_at<double>(row, str(metric.column, "_mean"))) return &metric;
  }
  return nullptr;
}

void add_value(ResultTable& table, ResultRow& row, const Value& value) {
  const Metric* const metric = metric_in(value);
  if (metric == nullptr) return;
  if (table.metric == nullptr) table.metric = metric;
  TESSERA_CHECK(metric == table.metric, ConfigError, "is judged by ", metric->key, ", rows before it by ", table.metric->key);
  row.value = value.at(str(metric->column, "_mean")).as_double();
  row.deviation = optional_at<double>(value, str(metric->column, "_sd"));
}

void add_machine(ResultTable& table, const Value& result) {
  const ResultMachine made{optional_at<std::string>(result, "commit").value_or(""), result.at("processor").as_string(),
                           result.at("threads").as_int()};
  const auto same = [&](const ResultMachine& each) {
    return each.commit == made.commit && each.processor == made.processor && each.threads == made.threads;
  };
  auto found = std::ranges::find_if(table.machines, same);
  if (found == table.machines.end()) found = table.machines.insert(table.machines.end(), made);
  ++found->results;
}

template <class Text>
std::string listed(const Value::List& values, const Text& text) {
  std::string list;
  for (const Value& value : values) list += str(list.empty() ? "" : ", ", text(value));
  return list;
}

void add_settings(ResultTable& table, ResultRow& row, const Value& value, const Value& root) {
  if (const std::optional<double> tuned = optional_at<double>(value, "tuned")) {
    const Value* const tune = root.find("tune");  // missing in tables of older programs
    row.settings = str(tune == nullptr ? "" : tune->at("key").as_string() + ' ', shortest(*tuned));
  }
  if (!row.baseline) row.against = optional_at<std::string>(value, "against").value_or(root.at("baseline").as_string());
  const Value::List& cells = value.at("cells").as_list();
  row.seed_list = listed(cells, [](const Value& cell) { return cell.at("seed").as_int(); });
  for (const Value& cell : cells) add_machine(table, cell);
  if (cells.empty()) return;
  const Value& first = cells.front();
  row.stages = listed(first.at("stages").as_list(), [](const Value& stage) { return stage.at("stage").as_string(); });
  row.steps = first.at("steps").as_int();
  row.train_seconds = first.at("train_seconds").as_double();
}

// Older programs wrote a deviation of fewer runs than it is reported for.
void set_seeds(ResultRow& row, std::int64_t seeds) {
  row.seeds = seeds;
  if (seeds < static_cast<std::int64_t>(kRunsForDeviation)) row.deviation.reset();
}

// The sizes are those of the first seed.
ResultRow row_of_arm(ResultTable& table, const Value& value, const Value& root) {
  const std::string& baseline = root.at("baseline").as_string();
  ResultRow row{.name = value.at("arm").as_string()};
  row.baseline = row.name == baseline;
  add_value(table, row, value);
  const Value::List& cells = value.at("cells").as_list();
  set_seeds(row, std::ssize(cells));
  if (!cells.empty()) {
    const Value& last = cells.front().at("stages").as_list().back();
    row.parameters = last.at("parameters").as_int();
    row.macs = last.at("macs").as_int();
    row.file_bytes = cells.front().at("file_bytes").as_int();
  }
  row.times = times_of(value.at("times"));
  add_settings(table, row, value, root);
  return row;
}

ResultRow row_of_stage(ResultTable& table, const Value& value, const Value& root) {
  const std::string& experiment = value.at("experiment").as_string();
  ResultRow row{.name = str(experiment, ": ", value.at("stage").as_string())};
  row.baseline = table.rows.empty() || !table.rows.back().name.starts_with(experiment + ": ");
  add_value(table, row, value);
  if (table.metric != nullptr) set_seeds(row, std::ssize(value.at(table.metric->column).as_list()));
  row.parameters = value.at("parameters").as_int();
  row.macs = value.at("macs").as_int();
  row.file_bytes = value.at("file_bytes").as_int();
  row.times = times_of(value.at("latency"));
  add_machine(table, value.find("processor") ? value : root);  // tables of older programs have one machine
  return row;
}

void read_head(ResultTable& table, const Value& root, bool reproduced) {
  table.name = std::filesystem::path(table.path).stem().string();
  if (!reproduced) {
    const std::int64_t threads = root.at("threads").as_int();
    table.timed_on = root.at("processor").as_string() + (threads > 0 ? str(", ", threads, " threads") : "");
    return;
  }
  table.name = root.at("name").as_string();
  table.timed_on = root.at("timed_on").as_string();
  table.command = optional_at<std::string>(root, "command").value_or("");
  for (const Value& answer : root.at("answers").as_list()) table.answers.push_back(answer.at("answer").as_string());
}

// The batch and phase of every timing, in order of appearance.
std::vector<std::string> timed_places(const ResultTable& results) {
  std::vector<std::string> places;
  for (const ResultRow& row : results.rows) {
    for (const TimedResult& timed : row.times) {
      if (std::ranges::find(places, timed.at) == places.end()) places.push_back(timed.at);
    }
  }
  return places;
}

HtmlCell summary_cell(const Summary& summary, std::optional<double> of_medians = {}) {
  return {str(formatted("%.4g", summary.median), " (", formatted("%.4g", summary.p10), "-", formatted("%.4g", summary.p90),
              of_medians ? "; " + formatted("%.4g", *of_medians) : "", ")"),
          summary.median};
}

}  // namespace

HtmlCell number_cell(const std::optional<double>& value, const char* format) {
  return value ? HtmlCell{formatted(format, *value), value} : HtmlCell{"-"};
}

HtmlCell count_cell(const std::optional<std::int64_t>& value) {
  return value ? HtmlCell{std::to_string(*value), static_cast<double>(*value)} : HtmlCell{"-"};
}

ResultTable read_result_table(Vfs& vfs, const std::string& path) {
  const Value root = parse_json(vfs.read_file(path), path);
  const bool reproduced = root.is_map() && root.find("baseline") != nullptr;
  TESSERA_CHECK(root.is_map() && root.find("rows") != nullptr && (reproduced || root.find("processor") != nullptr), IoError, path,
                ": is no table; give the JSON of tessera reproduce or of tessera table --format json");
  ResultTable table{.path = path};
  std::string where = path;
  try {
    read_head(table, root, reproduced);
    const Value::List& rows = root.at("rows").as_list();
    for (std::size_t i = 0; i < rows.size(); ++i) {
      where = str(path, ": rows[", i, ']');
      table.rows.push_back(reproduced ? row_of_arm(table, rows[i], root) : row_of_stage(table, rows[i], root));
    }
  } catch (const ConfigError& error) {
    throw IoError(str(where, ": ", error.what()));
  }
  return table;
}

HtmlTable to_table(const ResultTable& results, const std::string& id) {
  HtmlTable table{.id = id, .caption = results.name};
  const std::vector<std::string> places = timed_places(results);
  const std::string judged = results.metric ? "test " + heading_of(*results.metric) : std::string("test");
  table.columns = {{"network"},          {"n", true},     {judged, true},    {"standard deviation", true},
                   {"parameters", true}, {"MMACs", true}, {"file KiB", true}};
  for (const std::string& place : places) {
    table.columns.push_back({place + ": ms (p10-p90)", true});
    table.columns.push_back({str("speed-up (p10-p90; of medians)"), true});
  }
  for (const ResultRow& row : results.rows) {
    const auto in_units = [&](const std::optional<double>& value) {
      return value ? std::optional(in_unit(*results.metric, *value)) : std::nullopt;
    };
    const auto over = [](const std::optional<std::int64_t>& value, double unit) {
      return value ? std::optional(static_cast<double>(*value) / unit) : std::nullopt;
    };
    std::vector<HtmlCell> cells{{row.name},
                                count_cell(row.seeds),
                                number_cell(in_units(row.value), "%.2f"),
                                number_cell(in_units(row.deviation), "%.2f"),
                                count_cell(row.parameters),
                                number_cell(over(row.macs, 1e6), "%.2f"),
                                number_cell(over(row.file_bytes, 1024), "%.0f")};
    for (const std::string& place : places) {
      const auto timed = std::ranges::find(row.times, place, &TimedResult::at);
      cells.push_back(timed == row.times.end() ? HtmlCell{"-"} : summary_cell(timed->time));
      cells.push_back(timed == row.times.end() || !timed->speedup ? HtmlCell{"-"}
                                                                  : summary_cell(*timed->speedup, timed->of_medians));
    }
    table.rows.push_back(std::move(cells));
  }
  return table;
}

HtmlTable settings_table(const ResultTable& results, const std::string& id) {
  HtmlTable table{.id = id, .caption = str("Settings of ", results.name)};
  table.columns = {{"arm"},
                   {"tuned to"},
                   {"compared with"},
                   {"seeds"},
                   {"stages"},
                   {"steps, first seed", true},
                   {"seconds of training, first seed", true}};
  for (const ResultRow& row : results.rows) {
    if (row.seed_list.empty()) continue;
    const auto or_dash = [](const std::string& text) { return HtmlCell{text.empty() ? "-" : text}; };
    table.rows.push_back({{row.name},
                          or_dash(row.settings),
                          or_dash(row.against),
                          {row.seed_list},
                          {row.stages},
                          count_cell(row.steps),
                          number_cell(row.train_seconds, "%.0f")});
  }
  return table;
}

HtmlTable machines_table(const ResultTable& results, const std::string& id) {
  HtmlTable table{.id = id, .caption = str("Environment of ", results.name)};
  table.columns = {{"processor"}, {"threads", true}, {"commit"}, {"results", true}};
  for (const ResultMachine& machine : results.machines) {
    table.rows.push_back({{machine.processor},
                          count_cell(machine.threads > 0 ? std::optional(machine.threads) : std::nullopt),
                          {machine.commit.empty() ? "-" : machine.commit},
                          count_cell(machine.results)});
  }
  return table;
}

}  // namespace tessera
