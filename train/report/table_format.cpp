#include <algorithm>
#include <set>

#include "compress/report.h"
#include "core/config/read.h"
#include "core/support/error.h"
#include "core/support/text.h"
#include "train/report/statistics.h"
#include "train/report/table.h"
#include "train/tasks/builtin.h"

namespace tessera {
namespace {

// The metric of the rows. A table without rows has the head of the first task's metric.
const Metric& metric_of(const Table& table) { return table.rows.empty() ? usual_metric() : *table.rows.front().metric; }

std::string mmacs(std::int64_t macs) { return formatted("%.2f", static_cast<double>(macs) / 1e6); }

std::string cost_cells(const TableRow& row) {
  if (!row.range) return str(row.parameters, " | ", mmacs(row.macs));
  const CostRange& range = *row.range;
  return str(row.parameters, " (", range.least_parameters, '-', range.greatest_parameters, ") | ", mmacs(row.macs), " (",
             mmacs(range.least_macs), '-', mmacs(range.greatest_macs), ')');
}

const std::string& processor_of(const Table& table, const TableRow& row) {
  return row.processor.empty() ? table.processor : row.processor;
}

std::int64_t threads_of(const Table& table, const TableRow& row) {
  return row.processor.empty() && row.threads == 0 ? table.threads : row.threads;
}

// A GPU has no thread count to show.
std::string place_of(const std::string& processor, std::int64_t threads) {
  return threads > 0 ? str(processor, ", ", threads, " threads") : processor;
}

using Timed = std::pair<Phase, std::int64_t>;  // phase and batch

Timed timed_of(const TableLatency& latency) { return {latency.phase, latency.batch}; }

std::string latency_cells(const TableRow& row, const Timed& timed) {
  const auto found = std::ranges::find(row.latency, timed, timed_of);
  if (found == row.latency.end()) return "  |  |";
  return str(' ', spread_text(found->time), " | ", spread_text(found->speedup, found->of_medians), " |");
}

std::string name_of(const TableRow& row, const TableLatency& latency) {
  return str(row.stage, " of ", row.experiment, " at ", latency.phase == Phase::decode ? "decode, " : "", "batch ",
             latency.batch);
}

// Each processor and number of threads that rows were timed on; with the experiments' names if there are several.
std::string timed_on(const Table& table) {
  std::vector<std::pair<std::string, std::set<std::string>>> places;
  for (const TableRow& row : table.rows) {
    const std::string place = place_of(processor_of(table, row), threads_of(table, row));
    auto found = std::ranges::find(places, place, [](const auto& entry) { return entry.first; });
    if (found == places.end()) found = places.insert(places.end(), {place, {}});
    found->second.insert(row.experiment);
  }
  if (places.empty()) return place_of(table.processor, table.threads);
  if (places.size() == 1) return places.front().first;
  std::string text;
  for (const auto& [place, experiments] : places) {
    std::string names;
    for (const std::string& name : experiments) names += (names.empty() ? "" : ", ") + name;
    text += str(text.empty() ? "" : "; ", place, ": ", names);
  }
  return text + ";";
}

std::vector<TableRow> rows_with_places(const Table& table) {
  std::vector<TableRow> rows = table.rows;
  for (TableRow& row : rows) {
    row.threads = threads_of(table, row);
    row.processor = processor_of(table, row);
  }
  return rows;
}

}  // namespace

CostRange TableRow::cost_range() const {
  return range.value_or(
      CostRange{.least_parameters = parameters, .greatest_parameters = parameters, .least_macs = macs, .greatest_macs = macs});
}

double TableRow::mean() const { return mean_of(values); }

std::optional<double> TableRow::stddev() const { return reported_deviation(values); }

std::string to_markdown(const Table& table) {
  std::string text = str("| experiment | stage | n | ", heading_of(metric_of(table)), " | parameters | MMACs | file KiB |");
  std::string rule = "|---|---|---|---|---|---|---|";
  std::set<Timed> all;
  for (const TableRow& row : table.rows) {
    for (const TableLatency& latency : row.latency) all.insert(timed_of(latency));
  }
  for (const auto& [phase, batch] : all) {
    const std::string name = phase == Phase::inference ? std::string() : str(name_of(phase), ", ");
    text += str(' ', name, "batch ", batch, ": ms (p10-p90) | speed-up (p10-p90; of medians) |");
    rule += "---|---|";
  }
  text += "\n" + rule + "\n";
  for (const TableRow& row : table.rows) {
    text += str("| ", markdown_cell(row.experiment), " | ", markdown_cell(row.stage), " | ", row.values.size(), " | ",
                mean_text(*row.metric, row.values), " | ", cost_cells(row), " | ",
                formatted("%.0f", static_cast<double>(row.file_bytes) / 1024.0), " |");
    for (const Timed& timed : all) text += latency_cells(row, timed);
    text += "\n";
  }
  text += str("\nTimed on ", timed_on(table), timed_on(table).ends_with(';') ? "" : ",",
              " networks interleaved, batch norm folded; speed-up over the first stage.\n");
  std::vector<TimedAlone> alone;
  for (const TableRow& row : table.rows) {
    for (const TableLatency& latency : row.latency) alone.push_back({name_of(row, latency), latency.time.median, latency.alone});
  }
  if (const std::string far = far_from_alone(alone); !far.empty()) text += far + '\n';
  if (std::ranges::none_of(table.rows, [](const TableRow& row) { return row.range.has_value(); })) return text;
  return text + "Where seeds have different networks, size and time are the first run's, with the range over all in brackets.\n";
}

std::string to_csv(const Table& table) {
  const std::string_view column = metric_of(table).column;
  std::string text = str("experiment,stage,runs,", column, "_mean,", column,
                         "_sd,parameters,macs,file_bytes,phase,batch,ms_median,ms_p10,ms_p90,ms_alone,"
                         "speedup_median,speedup_p10,speedup_p90,speedup_of_medians,processor,threads,parameters_least,"
                         "parameters_greatest,macs_least,macs_greatest\n");
  for (const TableRow& row : table.rows) {
    const std::string head =
        str(csv_field(row.experiment), ',', csv_field(row.stage), ',', row.values.size(), ',', formatted("%.6f", row.mean()), ',',
            deviation_field(row.values), ',', row.parameters, ',', row.macs, ',', row.file_bytes);
    const CostRange range = row.cost_range();
    const std::string tail =
        str(',', csv_field(processor_of(table, row)), ',', threads_of(table, row), ',', range.least_parameters, ',',
            range.greatest_parameters, ',', range.least_macs, ',', range.greatest_macs, '\n');
    for (const TableLatency& latency : row.latency) {
      text += str(head, ',', name_of(latency.phase), ',', latency.batch, ',', latency.time.median, ',', latency.time.p10, ',',
                  latency.time.p90, ',', latency.alone, ',', latency.speedup.median, ',', latency.speedup.p10, ',',
                  latency.speedup.p90, ',', latency.of_medians, tail);
    }
    if (row.latency.empty()) text += head + ",,,,,,,,,," + tail;
  }
  return text;
}

void TableLatency::fields(Fields& f) {
  f.add_computed("phase", std::string(name_of(phase)), {.help = "inference or decode"});
  f.add("batch", batch, {.help = "samples of one run"});
  f.add_computed("ms", to_value(time), {.help = "milliseconds of one run: median, p10, p90"});
  f.add_computed("speedup", to_value(speedup), {.help = "over the first stage's network: median, p10, p90"});
  f.add("of_medians", of_medians, {.help = "speed-up by the two medians"});
  f.add("alone_ms", alone, {.help = "milliseconds of one run, of the network timed alone"});
}

void TableRow::fields(Fields& f) {
  const CostRange costs = cost_range();
  f.add("experiment", experiment, {.help = "its name"});
  f.add("stage", stage, {.help = "its name"});
  f.add("processor", processor, {.help = "where it was timed"});
  f.add("threads", threads, {.help = "0 on a GPU"});
  f.add(metric->column, values, {.help = "on the test split, of each run"});
  f.add_computed(str(metric->column, "_mean"), mean(), {.help = "over the runs"});
  f.add_computed(str(metric->column, "_sd"), stddev(),
                 {.help = "sample standard deviation; null of fewer than three runs", .nullable = true});
  f.add("parameters", parameters, {.help = "of the first run's network"});
  f.add("macs", macs, {.help = "per sample, of the first run's network"});
  f.add("file_bytes", file_bytes, {.help = "of its weights on disk"});
  f.add_computed("parameters_range", std::vector{costs.least_parameters, costs.greatest_parameters},
                 {.help = "least and greatest over the runs"});
  f.add_computed("macs_range", std::vector{costs.least_macs, costs.greatest_macs}, {.help = "least and greatest over the runs"});
  f.add("latency", latency, {.help = "of each batch"});
}

void Table::fields(Fields& f) {
  f.add("processor", processor, {.help = "of this machine"});
  f.add("threads", threads, {.help = "0 on a GPU"});
  f.add_computed("rows", rows_with_places(*this), {.help = "one per finished stage"});
}

Value to_value(const Table& table) { return write(table); }

}  // namespace tessera
