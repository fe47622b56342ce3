#include <cmath>
#include <cstdio>

#include "core/error.h"
#include "train/table.h"

namespace tessera {
namespace {

std::string number(const char* format, double value) {
  char text[64];
  std::snprintf(text, sizeof text, format, value);
  return text;
}

std::string accuracy_cell(const TableRow& row) {
  const std::string mean = number("%.2f", 100.0 * row.mean_accuracy());
  if (row.accuracies.size() < 2) return mean;
  return str(mean, " ± ", number("%.2f", 100.0 * row.stddev_accuracy()));
}

// RFC 4180: a field with a comma, a quote or a line break stands in quotes, its quotes doubled.
std::string csv_field(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) quoted += c == '"' ? std::string("\"\"") : std::string(1, c);
  return quoted + "\"";
}

// A cell of a Markdown table ends at a bar.
std::string markdown_cell(const std::string& text) {
  std::string cell;
  for (const char c : text) cell += c == '|' ? std::string("\\|") : std::string(1, c);
  return cell;
}

Value timing_value(const Timing& timing) {
  Value value = Value::map();
  value.set("median", timing.median);
  value.set("p10", timing.p10);
  value.set("p90", timing.p90);
  return value;
}

}  // namespace

double TableRow::mean_accuracy() const {
  double sum = 0;
  for (const double accuracy : accuracies) sum += accuracy;
  return accuracies.empty() ? 0.0 : sum / static_cast<double>(accuracies.size());
}

double TableRow::stddev_accuracy() const {
  if (accuracies.size() < 2) return 0.0;
  const double mean = mean_accuracy();
  double sum = 0;
  for (const double accuracy : accuracies) sum += (accuracy - mean) * (accuracy - mean);
  return std::sqrt(sum / static_cast<double>(accuracies.size() - 1));
}

std::string to_markdown(const Table& table) {
  std::string text = "| experiment | stage | n | top-1 % | parameters | MMACs | file KiB |";
  std::string rule = "|---|---|---|---|---|---|---|";
  if (!table.rows.empty()) {
    for (const TableLatency& latency : table.rows.front().latency) {
      text += str(" batch ", latency.batch, ": ms (p10-p90) | speed-up (p10-p90) |");
      rule += "---|---|";
    }
  }
  text += "\n" + rule + "\n";
  for (const TableRow& row : table.rows) {
    text += str("| ", markdown_cell(row.experiment), " | ", markdown_cell(row.stage), " | ", row.accuracies.size(), " | ",
                accuracy_cell(row), " | ", row.parameters, " | ", number("%.2f", static_cast<double>(row.macs) / 1e6), " | ",
                number("%.0f", static_cast<double>(row.file_bytes) / 1024.0), " |");
    for (const TableLatency& latency : row.latency) {
      text += str(' ', number("%.2f", latency.time.median), " (", number("%.2f", latency.time.p10), '-',
                  number("%.2f", latency.time.p90), ") | ", number("%.2f", latency.speedup.median), " (",
                  number("%.2f", latency.speedup.p10), '-', number("%.2f", latency.speedup.p90), ") |");
    }
    text += "\n";
  }
  return text + str("\nTimed on ", table.processor, ", ", table.threads, " threads, networks interleaved; speed-up over the first stage.\n");
}

std::string to_csv(const Table& table) {
  std::string text = "experiment,stage,runs,top1_mean,top1_sd,parameters,macs,file_bytes,batch,ms_median,ms_p10,ms_p90,"
                     "speedup_median,speedup_p10,speedup_p90\n";
  for (const TableRow& row : table.rows) {
    const std::string head = str(csv_field(row.experiment), ',', csv_field(row.stage), ',', row.accuracies.size(), ',',
                                 number("%.6f", row.mean_accuracy()), ',',
                                 number("%.6f", row.stddev_accuracy()), ',', row.parameters, ',', row.macs, ',', row.file_bytes);
    for (const TableLatency& latency : row.latency) {
      text += str(head, ',', latency.batch, ',', latency.time.median, ',', latency.time.p10, ',', latency.time.p90, ',',
                  latency.speedup.median, ',', latency.speedup.p10, ',', latency.speedup.p90, '\n');
    }
    if (row.latency.empty()) text += head + ",,,,,,,\n";
  }
  return text;
}

Value to_value(const Table& table) {
  Value::List rows;
  for (const TableRow& row : table.rows) {
    Value item = Value::map();
    item.set("experiment", row.experiment);
    item.set("stage", row.stage);
    item.set("top1", Value::list(Value::List(row.accuracies.begin(), row.accuracies.end())));
    item.set("top1_mean", row.mean_accuracy());
    item.set("top1_sd", row.stddev_accuracy());
    item.set("parameters", row.parameters);
    item.set("macs", row.macs);
    item.set("file_bytes", row.file_bytes);
    Value::List latencies;
    for (const TableLatency& latency : row.latency) {
      Value entry = Value::map();
      entry.set("batch", latency.batch);
      entry.set("ms", timing_value(latency.time));
      entry.set("speedup", timing_value(latency.speedup));
      latencies.push_back(std::move(entry));
    }
    item.set("latency", Value::list(std::move(latencies)));
    rows.push_back(std::move(item));
  }
  Value value = Value::map();
  value.set("processor", table.processor);
  value.set("threads", table.threads);
  value.set("rows", Value::list(std::move(rows)));
  return value;
}

}  // namespace tessera
