#include "train/run/profile_report.h"

#include <algorithm>
#include <functional>
#include <map>
#include <numeric>
#include <optional>
#include <utility>

#include "compress/report.h"
#include "compress/timing/summary.h"
#include "core/config/read.h"
#include "core/support/error.h"
#include "core/support/text.h"

namespace tessera {
namespace {

constexpr std::size_t kShown = 10;

using Cells = std::vector<std::string>;

struct Table {
  std::vector<Cells> rows;  // the first row has the column titles
  std::vector<bool> right;
};

// Rows that share a line of a table. Engine time has its own line. Time spent waiting for data or for
// other ranks is not engine time.
struct Line {
  std::string name;
  std::string part;
  std::int64_t calls = 0;
  std::int64_t forward_ns = 0;
  std::int64_t backward_ns = 0;
  std::int64_t ns = 0;
  ProfiledWork work = {};
};

// Whether the row is time spent waiting for the loader or for other ranks.
bool waits(const ProfileRow& row) { return row.part == ProfilePart::data || row.part == ProfilePart::exchange; }

std::int64_t shown_ns(const ProfileRow& row) {
  if (row.part == ProfilePart::profiler) return 0;
  return waits(row) ? row.ns() : row.kernel_ns;
}

std::int64_t total(const std::vector<std::int64_t>& numbers) {
  return std::accumulate(numbers.begin(), numbers.end(), std::int64_t{0});
}

std::int64_t total(const std::vector<Line>& lines, std::size_t first) {
  std::int64_t sum = 0;
  for (std::size_t i = first; i < lines.size(); ++i) sum += lines[i].ns;
  return sum;
}

std::int64_t profiler_ns(const ProfileReport& report) {
  std::int64_t sum = 0;
  for (const ProfileRow& row : report.rows) sum += row.part == ProfilePart::profiler ? row.ns() : 0;
  return sum;
}

using Key = std::pair<std::string, std::string>;  // name and part

// The lines, longest time first. Rows without a key and rows without time are left out.
std::vector<Line> lines_by(const std::vector<ProfileRow>& rows, const std::function<std::optional<Key>(const ProfileRow&)>& key) {
  std::map<Key, Line> lines;
  for (const ProfileRow& row : rows) {
    const std::int64_t ns = shown_ns(row);
    const auto place = key(row);
    if (!place || ns == 0) continue;
    Line& line = lines[*place];
    std::tie(line.name, line.part) = *place;
    line.calls += row.calls;
    line.ns += ns;
    (row.part == ProfilePart::forward ? line.forward_ns : line.backward_ns) += ns;
    line.work.flops += row.work.flops;
    line.work.bytes += row.work.bytes;
  }
  std::vector<Line> sorted;
  for (auto& [place, line] : lines) sorted.push_back(std::move(line));
  std::ranges::stable_sort(sorted, [](const Line& a, const Line& b) { return a.ns > b.ns; });
  return sorted;
}

std::string milliseconds(double ns) { return formatted("%.2f", 1e-6 * ns); }

std::string share(const ProfileReport& report, std::int64_t ns) {
  return percent(static_cast<double>(ns) / static_cast<double>(report.wall_ns()));
}

std::string ms_per_step(const ProfileReport& report, std::int64_t ns) {
  return milliseconds(static_cast<double>(ns) / static_cast<double>(report.steps()));
}

// Adds the rate and its share of the peak. Work per nanosecond is the rate in 1e9 per second, the unit of `peak`.
void add_rate(Cells& cells, std::int64_t work, std::int64_t ns, double peak) {
  if (work == 0 || ns == 0) {
    cells.insert(cells.end(), 2, "-");
    return;
  }
  const double rate = static_cast<double>(work) / static_cast<double>(ns);
  cells.push_back(formatted("%.1f", rate));
  cells.push_back(formatted("%.0f %%", 100.0 * rate / peak));
}

void add_rates(Cells& cells, const Line& line, const MachinePeaks& peaks) {
  add_rate(cells, line.work.flops, line.ns, peaks.gflops);
  add_rate(cells, line.work.bytes, line.ns, peaks.gbytes);
}

// Adds a line that is neither an op nor a layer, with `blanks` empty cells before its milliseconds.
void add_tail(Table& table, const ProfileReport& report, const std::string& name, std::int64_t ns, std::size_t blanks) {
  Cells& cells = table.rows.emplace_back();
  cells.push_back(name);
  cells.insert(cells.end(), blanks, "");
  cells.push_back(ms_per_step(report, ns));
  cells.push_back(share(report, ns));
}

void add_end(Table& table, const ProfileReport& report, std::size_t blanks) {
  add_tail(table, report, "engine, outside kernels", report.engine_ns(), blanks);
  add_tail(table, report, "profiler", profiler_ns(report), blanks);
  add_tail(table, report, "step", report.wall_ns(), blanks);
}

void add_others(Table& table, const ProfileReport& report, const std::vector<Line>& lines, std::size_t blanks) {
  if (lines.size() > kShown) add_tail(table, report, str(lines.size() - kShown, " others"), total(lines, kShown), blanks);
}

Table op_table(const ProfileReport& report) {
  const std::vector<Line> lines =
      lines_by(report.rows, [](const ProfileRow& row) { return Key(row.what, std::string(name_of(row.part))); });
  Table table{{{"op", "part", "calls", "ms", "share", "GFLOP/s", "of peak", "GB/s", "of peak"}},
              {false, false, true, true, true, true, true, true, true}};
  for (std::size_t i = 0; i < std::min(lines.size(), kShown); ++i) {
    const Line& line = lines[i];
    const double calls = static_cast<double>(line.calls) / static_cast<double>(report.steps());
    Cells& cells = table.rows.emplace_back(
        Cells{line.name, line.part, formatted("%.3g", calls), ms_per_step(report, line.ns), share(report, line.ns)});
    add_rates(cells, line, report.peaks);
  }
  add_others(table, report, lines, 2);
  add_end(table, report, 2);
  return table;
}

Table layer_table(const ProfileReport& report) {
  const std::vector<Line> lines = lines_by(
      report.rows, [](const ProfileRow& row) { return row.layer.empty() ? std::nullopt : std::optional(Key(row.layer, "")); });
  Table table{{{"layer", "forward ms", "backward ms", "ms", "share", "GFLOP/s", "of peak", "GB/s", "of peak"}},
              {false, true, true, true, true, true, true, true, true}};
  for (std::size_t i = 0; i < std::min(lines.size(), kShown); ++i) {
    const Line& line = lines[i];
    Cells& cells =
        table.rows.emplace_back(Cells{line.name, ms_per_step(report, line.forward_ns), ms_per_step(report, line.backward_ns),
                                      ms_per_step(report, line.ns), share(report, line.ns)});
    add_rates(cells, line, report.peaks);
  }
  add_others(table, report, lines, 2);
  const std::int64_t inside = total(lines, 0) + report.engine_ns() + profiler_ns(report);
  add_tail(table, report, "outside the layers", report.wall_ns() - inside, 2);
  add_end(table, report, 2);
  return table;
}

std::string markdown(const Table& table) {
  std::string text;
  for (std::size_t i = 0; i < table.rows.size(); ++i) {
    for (std::size_t column = 0; column < table.right.size(); ++column) {
      const Cells& cells = table.rows[i];
      text += str("| ", column < cells.size() ? markdown_cell(cells[column]) : std::string(), ' ');
    }
    text += "|\n";
    if (i > 0) continue;
    for (const bool right : table.right) text += right ? "|---:" : "|---";
    text += "|\n";
  }
  return text;
}

std::string timing_line(const ProfileReport& report) {
  std::vector<double> ns(report.step_ns.begin(), report.step_ns.end());
  const Summary summary = summarise(ns);
  const double mean = static_cast<double>(report.wall_ns()) / static_cast<double>(report.steps());
  return str("stage ", report.stage, ", steps ", report.last_step - report.steps() + 1, " to ", report.last_step, ", ",
             report.batch, " samples each: ", milliseconds(mean), " ms a step, median ", milliseconds(summary.median),
             " (p10-p90 ", milliseconds(summary.p10), "-", milliseconds(summary.p90), "), ",
             formatted("%.0f", 1e9 * static_cast<double>(report.batch * report.units_per_sample) / mean), ' ',
             report.throughput_unit);
}

std::string peak_line(const ProfileReport& report) {
  return str("peaks of ", report.processor, ", ", report.peaks.threads, " threads: ", formatted("%.1f", report.peaks.gflops),
             " GFLOP/s (f32 multiply-add), ", formatted("%.1f", report.peaks.gbytes), " GB/s (scaling an array)");
}

std::string overhead_line(const ProfileReport& report) {
  return str("engine overhead: ", share(report, report.engine_ns()), " of a step, ", ms_per_step(report, report.engine_ns()),
             " ms outside of kernels and of waiting");
}

std::string between_line(const ProfileReport& report) {
  if (report.between_ns.empty()) return {};
  const double mean = static_cast<double>(total(report.between_ns)) / static_cast<double>(report.between_ns.size());
  return str("between two steps, not in the tables: ", milliseconds(mean), " ms (logging, validation, saving)");
}

struct OpRow : ProfileRow {
  void fields(Fields& f) {
    f.add_computed("part", std::string(name_of(part)), {.help = "of the step"});
    f.add("what", what, {.help = "the op's name, or what was done"});
    f.add("layer", layer, {.help = "that ran it; empty outside of all"});
    f.add("calls", calls, {.help = "in all steps"});
    f.add("kernel_ns", kernel_ns, {.help = "inside kernels, in all steps"});
    f.add("engine_ns", engine_ns, {.help = "outside of kernels, in all steps"});
    f.add("flops", work.flops, {.help = "in all steps"});
    f.add("bytes", work.bytes, {.help = "read and written in all steps"});
  }
};

std::vector<OpRow> op_rows(const ProfileReport& report) {
  std::vector<OpRow> rows;
  for (const ProfileRow& row : report.rows) rows.push_back(OpRow{row});
  return rows;
}

}  // namespace

std::int64_t ProfileReport::wall_ns() const noexcept { return total(step_ns); }

std::int64_t ProfileReport::engine_ns() const noexcept {
  std::int64_t sum = 0;
  for (const ProfileRow& row : rows) {
    if (!waits(row) && row.part != ProfilePart::profiler) sum += row.engine_ns;
  }
  return sum;
}

std::string to_text(const ProfileReport& report) {
  const auto text = [](const Table& table) { return aligned(table.rows, table.right); };
  const std::string between = between_line(report);
  return str("profile of ", timing_line(report), '\n', peak_line(report), "\n\n", text(op_table(report)), '\n',
             text(layer_table(report)), '\n', overhead_line(report), between.empty() ? "" : "\n", between);
}

std::string to_markdown(const ProfileReport& report) {
  const std::string between = between_line(report);
  return str("# Profile\n\n", timing_line(report), ".\n\n", peak_line(report), ".\n\n## By op\n\n", markdown(op_table(report)),
             "\n## By layer\n\n", markdown(layer_table(report)), '\n', overhead_line(report), ".\n", between.empty() ? "" : "\n",
             between, between.empty() ? "" : ".\n");
}

void MachinePeaks::fields(Fields& f) {
  f.add_computed("threads", std::int64_t{threads}, {.help = "that they were measured with"});
  f.add("gflops", gflops, {.help = "GFLOP/s of f32 multiply-adds in registers"});
  f.add("gbytes_per_second", gbytes, {.help = "of scaling an array larger than the caches"});
}

void ProfileReport::fields(Fields& f) {
  f.add("stage", stage, {.help = "its name"});
  f.add_computed("first_step", last_step - steps() + 1, {.help = "of the run"});
  f.add("last_step", last_step, {.help = "of the run"});
  f.add("batch", batch, {.help = "samples of a step"});
  f.add("processor", processor, {.help = "its name"});
  f.add("peaks", peaks, {.help = "what the machine can do"});
  f.add("step_ns", step_ns, {.help = "time of each step"});
  f.add("between_ns", between_ns, {.help = "from one step's end to the next one's begin"});
  f.add_computed("engine_ns", engine_ns(), {.help = "outside of kernels and of waiting for data or other ranks"});
  f.add_computed("rows", op_rows(*this), {.help = "where the time of the steps went"});
}

Value to_value(const ProfileReport& report) { return write(report); }

}  // namespace tessera
