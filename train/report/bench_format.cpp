#include <algorithm>

#include "compress/timing/speed.h"
#include "core/support/error.h"
#include "core/support/text.h"
#include "train/report/bench_report.h"

namespace tessera {
namespace {

using Cells = std::vector<std::string>;

std::string three_digits(double value) { return formatted(value < 9.995 ? "%.3g" : "%.1f", value); }

// Without work to count, as of a rectifier, there is no rate.
std::string gflops_cell(const TimedSide& side) { return side.flops > 0 ? formatted("%.1f", side.gflops_per_second()) : ""; }

std::string macs_cell(const TimedSide& side) {
  return side.macs > 0 ? formatted("%.2f", static_cast<double>(side.macs) / 1e6) : "";
}

std::string ms_cell(const Summary& ms) {
  return str(three_digits(ms.median), " (", three_digits(ms.p10), '-', three_digits(ms.p90), ')');
}

bool is_compressed(const BenchPart& part) { return part.rows.back().compressed.has_value(); }

std::string table_of(const BenchPart& part) {
  std::vector<Cells> rows{{"layer", "kind", "MMACs", "dense ms (p10-p90)", "GFLOP/s", "share"}};
  std::vector<bool> right{false, false, true, true, true, true};
  if (is_compressed(part)) {
    rows[0].insert(rows[0].end(), {"compressed", "MMACs", "ms (p10-p90)", "GFLOP/s", "speed-up (95 %)"});
    right.insert(right.end(), {false, true, true, true, true});
  }
  for (const LayerTiming& row : part.rows) {
    const TimedSide& dense = row.dense;
    Cells& cells = rows.emplace_back(Cells{row.path, dense.kind, macs_cell(dense), ms_cell(dense.ms), gflops_cell(dense),
                                           formatted("%.1f %%", 100 * row.network_share)});
    if (!row.compressed) continue;
    const TimedSide& compressed = *row.compressed;
    cells.insert(cells.end(), {compressed.kind, macs_cell(compressed), ms_cell(compressed.ms), gflops_cell(compressed),
                               describe(row.speedup)});
  }
  return aligned(rows, right);
}

// On a GPU: whether recorded work was timed, and for which rows it was not.
std::string how_timed(const BenchReport& report, const BenchPart& part) {
  if (report.gpu.empty()) return {};
  std::string queued;
  for (const LayerTiming& row : part.rows) {
    if (!row.replayed) queued += str(queued.empty() ? "" : ", ", row.path.empty() ? "the network" : row.path);
  }
  return str(", recorded and replayed", queued.empty() ? "" : "; as queued by the host: ", queued);
}

std::string csv_of(const TimedSide& side) {
  return str(side.kind, ',', side.macs, ',', side.flops, ',', shortest(side.ms.median), ',', shortest(side.ms.p10), ',',
             shortest(side.ms.p90), ',', side.flops > 0 ? shortest(side.gflops_per_second()) : "");
}

std::string csv_row(const BenchReport& report, const BenchPart& part, const LayerTiming& row) {
  const std::string compressed = row.compressed ? str(csv_of(*row.compressed), ',', shortest(row.speedup.median), ',',
                                                      shortest(row.speedup.low), ',', shortest(row.speedup.high))
                                                : std::string(",,,,,,,,,");
  return str(part.batch, ',', part.threads, ',', name_of(report.phase), ',', precision_text(report.compute, report.tf32), ',',
             csv_field(row.path), ',', csv_of(row.dense), ',', formatted("%.4f", row.network_share), ',', compressed, ',',
             csv_field(report.setup), '\n');
}

Value to_value(const TimedSide& side) {
  Value value = Value::map();
  value.set("kind", side.kind);
  value.set("macs", side.macs);
  value.set("flops", side.flops);
  value.set("ms", to_value(side.ms));
  value.set("gflops_per_second", side.flops > 0 ? Value(side.gflops_per_second()) : Value());
  return value;
}

Value to_value(const MedianInterval& ratio) {
  Value value = Value::map();
  value.set("median", ratio.median);
  value.set("low", ratio.low);
  value.set("high", ratio.high);
  return value;
}

Value to_value(const BenchReport& report, const LayerTiming& row) {
  Value value = Value::map();
  value.set("path", row.path);
  value.set("network_share", row.network_share);
  value.set("dense", to_value(row.dense));
  value.set("compressed", row.compressed ? to_value(*row.compressed) : Value());
  value.set("speedup", row.compressed ? to_value(row.speedup) : Value());
  if (!report.gpu.empty()) value.set("replayed", row.replayed);
  return value;
}

}  // namespace

std::string to_text(const BenchReport& report) {
  std::string text =
      str(report.target, ", ", report.state, "; input ", report.input, "; ", report.rounds, " rounds\n", report.setup, '\n');
  for (const BenchPart& part : report.parts) {
    text += str('\n', where_timed(report, part), how_timed(report, part), '\n', table_of(part));
  }
  const bool compressed = std::ranges::any_of(report.parts, &is_compressed);
  if (!compressed) text += "\nno layer is compressed\n";
  return text;
}

std::string to_csv(const BenchReport& report) {
  std::string text =
      "batch,threads,phase,precision,path,kind,macs,flops,dense_ms,dense_p10,dense_p90,dense_gflops,network_share,compressed_"
      "kind,"
      "compressed_macs,compressed_flops,compressed_ms,compressed_p10,compressed_p90,compressed_gflops,speedup,speedup_low,"
      "speedup_high,setup\n";
  for (const BenchPart& part : report.parts) {
    for (const LayerTiming& row : part.rows) text += csv_row(report, part, row);
  }
  return text;
}

Value to_value(const BenchReport& report) {
  Value value = Value::map();
  value.set("target", report.target);
  value.set("state", report.state);
  value.set("setup", report.setup);
  value.set("input", Value::list(Value::List(report.input.begin(), report.input.end())));
  value.set("phase", std::string(name_of(report.phase)));
  value.set("precision", precision_text(report.compute, report.tf32));
  value.set("rounds", report.rounds);
  Value& timings = value.set("timings", Value::list());
  for (const BenchPart& part : report.parts) {
    Value entry = Value::map();
    entry.set("batch", part.batch);
    entry.set("threads", part.threads);
    Value& rows = entry.set("rows", Value::list());
    for (const LayerTiming& row : part.rows) rows.as_list().push_back(to_value(report, row));
    timings.as_list().push_back(std::move(entry));
  }
  return value;
}

}  // namespace tessera
