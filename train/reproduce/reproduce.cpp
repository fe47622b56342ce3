#include "train/reproduce/reproduce.h"

#include <algorithm>
#include <filesystem>
#include <ostream>
#include <utility>

#include "core/support/error.h"
#include "core/support/log.h"
#include "core/support/text.h"
#include "train/checkpoint/run_lock.h"
#include "train/reproduce/arm_times.h"
#include "train/reproduce/cell_run.h"
#include "train/reproduce/page.h"
#include "train/reproduce/picture.h"
#include "train/reproduce/table_plan.h"

namespace tessera {
namespace {

class Reproduction {
 public:
  Reproduction(Vfs& vfs, const std::string& table_file, const ReproduceOptions& options)
      : vfs_(vfs), options_(options), plan_(vfs, table_file, options), command_("tessera reproduce " + shell_word(table_file)) {}

  ReproduceReport run() {
    if (!options_.cell.empty()) return run_one();
    std::vector<Cell> cells = plan_.pending();
    plan_.check(cells);
    if (cells.empty()) say(std::string(kNothingLeft));
    std::filesystem::create_directories(plan_.runs());
    const RunLock lock(plan_.runs());
    for (; !cells.empty() && !report_.stopped; cells = not_tried(plan_.pending())) {
      for (std::size_t i = 0; i < cells.size() && !report_.stopped; ++i)
        attempt(cells[i], str('[', i + 1, '/', cells.size(), "] "));
    }
    const TableView view = plan_.view();
    if (!report_.stopped && view.cells == view.wanted) attempt_times();
    write_table();
    return std::move(report_);
  }

 private:
  ReproduceReport run_one() {
    std::filesystem::create_directories(plan_.runs());
    const std::vector<Cell> cells = plan_.pending();
    const auto found = std::ranges::find_if(cells, [&](const Cell& cell) { return cell.name() == options_.cell; });
    if (found != cells.end()) {
      plan_.check({&*found, 1});
      attempt(*found, "");
      return std::move(report_);
    }
    const bool done =
        std::ranges::any_of(plan_.results().cells(), [&](const CellResult& result) { return result.name == options_.cell; });
    TESSERA_CHECK(done, ConfigError, "--cell: ", plan_.table().name, " has no cell '", options_.cell,
                  "' that can run now; it has ", names_of(cells));
    say(options_.cell + ": has its result");
    write_table();
    return std::move(report_);
  }

  // The lock that the call running this cell holds.
  RunLock lock_of(const Cell& cell) const {
    const std::filesystem::path folder = std::filesystem::path(plan_.runs()) / "locks" / cell.name();
    std::filesystem::create_directories(folder);
    return RunLock(folder);
  }

  static std::string names_of(const std::vector<Cell>& cells) {
    std::string names;
    for (const Cell& cell : cells) names += (names.empty() ? "" : ", ") + cell.name();
    return names.empty() ? "none" : names;
  }

  void say(const std::string& text) const {
    if (options_.out != nullptr) *options_.out << text << std::endl;
  }

  std::vector<Cell> not_tried(std::vector<Cell> cells) const {
    std::erase_if(cells, [&](const Cell& cell) { return std::ranges::find(tried_, cell.name()) != tried_.end(); });
    return cells;
  }

  void attempt(const Cell& cell, const std::string& count) {
    tried_.push_back(cell.name());
    try {
      if (options_.stop.requested()) throw Stopped();
      const RunLock lock = lock_of(cell);
      plan_.results().reload();  // another call may have run it meanwhile
      if (plan_.results().find(cell.key, cell.seed) == nullptr) {
        const Way way = find_way(vfs_, cell, plan_.runs());
        say(str(count, cell.name(), ": ", way_text(way)));
        plan_.results().append(result_of(cell, way));
      }
    } catch (const Stopped&) {
      report_.stopped = true;
    } catch (const std::exception& error) {
      say(str(cell.name(), ": failed: ", error.what()));
      report_.failures.push_back(str(cell.name(), ": ", error.what()));
    }
    write_table();
  }

  CellResult result_of(const Cell& cell, const Way& way) {
    try {
      SessionOptions session{.out = options_.out, .terminal = options_.terminal, .stop = options_.stop};
      session.advise = false;  // no advice: the remedy is another setting in the table's files
      const CellRun run = run_cell(vfs_, cell, way, plan_.runs(), session);
      if (run.outcome == RunOutcome::stopped) throw Stopped();
      CellResult result = measure_cell(vfs_, cell, RunFolder::open(vfs_, run.folder));
      say(str(cell.name(), ": ", text_of(metric_of(result.stages.back().test->metric), result.test())));
      return result;
    } catch (const NumericError& error) {  // caused by the settings: the next call would fail in the same way
      say(str(cell.name(), ": failed: ", error.what()));
      return failed_cell(cell, error.what());
    }
  }

  void attempt_times() {
    try {
      time_arms(vfs_, plan_, options_.stop, [this](const std::string& text) { say(text); });
    } catch (const Stopped&) {
      report_.stopped = true;
    } catch (const std::exception& error) {
      report_.failures.push_back(str("timing of the networks: ", error.what()));
    }
  }

  // Writes the table of all results, including those of concurrent calls. The lock makes the calls take turns.
  void write_table() {
    const FileLock turn(std::filesystem::path(plan_.runs()) / "TABLE");
    plan_.results().reload();
    plan_.choose_all();
    const TableView view = plan_.view();
    const std::filesystem::path stem = plan_.stem();
    std::filesystem::create_directories(stem.parent_path());
    report_.written.clear();
    const auto file = [&](const char* ending, const std::string& text) {
      report_.written.push_back(plan_.stem() + ending);
      write_file_atomically(vfs_, report_.written.back(), text);
    };
    file(".md", to_markdown(view, command_, stem.filename().string() + ".svg"));
    file(".csv", to_csv(view));
    file(".json", to_json(to_value(view, command_), 2) + "\n");
    file(".svg", to_svg(view));
  }

  Vfs& vfs_;
  ReproduceOptions options_;
  TablePlan plan_;
  std::string command_;
  ReproduceReport report_;
  std::vector<std::string> tried_;  // names of cells
};

}  // namespace

ReproduceReport reproduce(Vfs& vfs, const std::string& table_file, const ReproduceOptions& options) {
  return Reproduction(vfs, table_file, options).run();
}

}  // namespace tessera
