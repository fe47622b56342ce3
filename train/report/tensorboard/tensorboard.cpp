#include "train/report/tensorboard/tensorboard.h"

#include <algorithm>
#include <map>
#include <optional>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "core/io/atomic_file.h"
#include "core/support/error.h"
#include "core/support/text.h"
#include "train/report/html/run_files.h"
#include "train/report/tensorboard/event_file.h"
#include "train/run/run_folder.h"

namespace tessera {
namespace {

namespace fs = std::filesystem;

// TensorBoard reads every file with "tfevents" in its name as an event file. An unfinished file has a name without it.
constexpr const char* kUnfinishedName = "export.unfinished";

struct ExportedRun {
  std::string path;
  fs::path below;  // path below the export folder: <name>/<n>
  std::string bytes;
};

// The name does not depend on the other runs of the export, so a later export finds the same folder.
fs::path folder_below(const std::string& path) {
  std::error_code error;
  const fs::path whole = fs::canonical(path, error);
  TESSERA_CHECK(!error, IoError, "export: cannot resolve ", path, ": ", error.message());
  return whole.parent_path().filename() / whole.filename();
}

double time_of(Vfs& vfs, const RunFolder& run) {
  const std::optional<RunStatus> status = read_run_status(vfs, run);
  return status ? static_cast<double>(status->time) : 0.0;
}

std::string tag_of(std::string key) {
  const std::size_t dot = key.find('.');
  if (dot != std::string::npos) key[dot] = '/';
  return key;
}

// An indented block is shown verbatim. Empty lines are dropped, among them the one after the last line break.
std::string as_code(const std::string& text) {
  std::string code;
  for (const std::string& line : split(text, '\n')) {
    if (!line.empty()) code += str("    ", line, '\n');
  }
  return code;
}

std::string events_of(Vfs& vfs, const RunFolder& run) {
  std::map<std::int64_t, std::vector<EventScalar>> steps;
  for (const RunSeries& series : read_run_numbers(vfs, run).series) {
    const std::string tag = tag_of(series.key);
    for (const CurvePoint& point : series.points) steps[point.step].push_back({tag, point.value});
  }
  TESSERA_CHECK(!steps.empty(), ConfigError, "export: ", run.path(), " has logged no number yet");
  EventFile file(time_of(vfs, run));
  file.add_text(fs::path(run.resolved_config()).filename().string(), as_code(vfs.read_file(run.resolved_config())));
  for (const auto& [step, scalars] : steps) file.add_scalars(step, scalars);
  return file.bytes();
}

bool is_export(const std::string& name) {
  return name == kEventFileName || name == kUnfinishedName || name.starts_with(str('.', kUnfinishedName, ".tmp-"));
}

// The first two levels may hold folders only, and the third may hold files of exports only.
void refuse_other_things(Vfs& vfs, const fs::path& folder, int depth = 0) {
  for (const DirectoryEntry& entry : vfs.list(folder)) {
    const bool link = fs::is_symlink(folder / entry.name);  // exports contain no links
    const bool ours = depth < 2 ? entry.is_directory : !entry.is_directory && !link && is_export(entry.name);
    TESSERA_CHECK(ours, ConfigError, "export: ", (folder / entry.name).string(),
                  " is no export for TensorBoard; give a folder that holds nothing else");
    if (depth < 2) refuse_other_things(vfs, folder / entry.name, depth + 1);
  }
}

void write_events(Vfs& vfs, const fs::path& folder, const std::string& bytes) {
  std::error_code error;
  fs::create_directories(folder, error);
  TESSERA_CHECK(!error, IoError, "export: cannot create ", folder.string(), ": ", error.message());
  remove_unfinished(folder / kUnfinishedName);
  write_file_atomically(vfs, folder / kUnfinishedName, bytes);
  vfs.replace(folder / kUnfinishedName, folder / kEventFileName);
  vfs.sync_directory(folder);
}

}  // namespace

void export_tensorboard(Vfs& vfs, std::span<const std::string> runs, const fs::path& folder) {
  std::vector<ExportedRun> exported;
  for (const std::string& path : runs) {
    const RunFolder run = RunFolder::open(vfs, path);
    ExportedRun next{run.path(), folder_below(run.path()), events_of(vfs, run)};
    const auto same = std::ranges::find(exported, next.below, &ExportedRun::below);
    TESSERA_CHECK(same == exported.end(), ConfigError, "export: ", same->path, " and ", next.path, " would both be ",
                  (folder / next.below).string(), "; export them into folders of their own");
    exported.push_back(std::move(next));
  }
  if (vfs.exists(folder)) {
    TESSERA_CHECK(fs::is_directory(folder), ConfigError, "export: ", folder.string(), " is a file; name a folder");
    refuse_other_things(vfs, folder);
  }
  for (const ExportedRun& run : exported) write_events(vfs, folder / run.below, run.bytes);
}

}  // namespace tessera
