#include <algorithm>

#include "compress/timing/speed.h"
#include "core/config/read.h"
#include "core/support/error.h"
#include "core/support/text.h"
#include "train/report/bench_report.h"

namespace tessera {
namespace {

using Cells = std::vector<std::string>;

std::string three_digits(double value) { return formatted(value < 9.995 ? "%.3g" : "%.1f", value); }

// A layer without work to count, such as a ReLU, has no rate.
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

// On a GPU: says that recorded work was timed, and names the rows for which it was not.
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

struct SideRow : TimedSide {
  std::optional<double> rate() const { return flops > 0 ? std::optional(gflops_per_second()) : std::nullopt; }
  void fields(Fields& f) {
    f.add("kind", kind, {.help = "what the layer is"});
    f.add("macs", macs, {.help = "multiply-accumulates per sample, of a forward"});
    f.add("flops", flops, {.help = "of one run of the batch"});
    f.add_computed("ms", to_value(ms), {.help = "milliseconds of one run: median, p10, p90"});
    f.add_computed("gflops_per_second", rate(), {.help = "null without work to count", .nullable = true});
  }
};

struct SpeedupRow : MedianInterval {
  void fields(Fields& f) {
    f.add("median", median, {.help = "over the rounds"});
    f.add("low", low, {.help = "lower end of its 95 % confidence interval"});
    f.add("high", high, {.help = "upper end of its 95 % confidence interval"});
  }
};

struct TimingRow {
  std::string path;
  double network_share = 0;
  SideRow dense;
  std::optional<SideRow> compressed;
  std::optional<SpeedupRow> speedup;
  std::optional<bool> replayed;

  void fields(Fields& f) {
    f.add("path", path, {.help = "of the layer; empty for the whole network"});
    f.add("network_share", network_share, {.help = "dense time alone over that of the dense network"});
    f.add("dense", dense, {.help = "the dense layer"});
    f.add("compressed", compressed, {.help = "null where the layer is not", .nullable = true});
    f.add("speedup", speedup, {.help = "dense time over compressed time", .nullable = true});
    f.add("replayed", replayed, {.help = "on a GPU: recorded work was timed"});
  }
};

struct PartRow {
  std::int64_t batch = 1;
  std::int64_t threads = 1;
  std::vector<TimingRow> rows;

  void fields(Fields& f) {
    f.add("batch", batch, {.help = "samples of one run"});
    f.add("threads", threads, {.help = "0 on a GPU"});
    f.add("rows", rows, {.help = "layers in the order of the forward, the network last"});
  }
};

TimingRow row_of(const LayerTiming& timing, bool on_gpu) {
  TimingRow row{timing.path, timing.network_share, SideRow{timing.dense}, {}, {}, {}};
  if (timing.compressed) {
    row.compressed = SideRow{*timing.compressed};
    row.speedup = SpeedupRow{timing.speedup};
  }
  if (on_gpu) row.replayed = timing.replayed;
  return row;
}

std::vector<PartRow> rows_of(const BenchReport& report) {
  std::vector<PartRow> parts;
  for (const BenchPart& part : report.parts) {
    std::vector<TimingRow>& rows = parts.emplace_back(PartRow{part.batch, part.threads, {}}).rows;
    for (const LayerTiming& timing : part.rows) rows.push_back(row_of(timing, !report.gpu.empty()));
  }
  return parts;
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

void BenchReport::fields(Fields& f) {
  f.add("target", target, {.help = "the run, experiment file or model"});
  f.add("state", state, {.help = "of the weights"});
  f.add("setup", setup, {.help = "the machine and the build"});
  f.add_computed("input", std::vector(input.begin(), input.end()), {.help = "shape of one sample"});
  f.add_computed("phase", std::string(name_of(phase)), {.help = "what was timed"});
  f.add_computed("precision", precision_text(compute, tf32), {.help = "what it computed in"});
  f.add("rounds", rounds, {.help = "timings of each layer"});
  f.add_computed("timings", rows_of(*this), {.help = "of each batch on each number of threads"});
}

Value to_value(const BenchReport& report) { return write(report); }

}  // namespace tessera
