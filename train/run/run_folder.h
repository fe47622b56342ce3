// The folder of one run: runs/<name>/<n>/. Made by train, read by every other verb; nothing outside it is needed to resume.
#pragma once

#include <span>
#include <string>

#include "core/io/vfs.h"

namespace tessera {

class RunFolder {
 public:
  // A new folder with the next free number below `runs`/`name`; never an existing one.
  static RunFolder create(Vfs& vfs, const std::string& runs, const std::string& name);
  // An existing run; throws ConfigError when `path` is not one, saying what is missing.
  static RunFolder open(Vfs& vfs, const std::string& path);

  const std::string& path() const noexcept { return path_; }
  std::string config() const { return path_ + "/config.yaml"; }  // as given
  std::string resolved_config() const { return path_ + "/config.resolved.yaml"; }  // every key, stages merged
  std::string environment() const { return path_ + "/env.json"; }
  std::string decisions() const { return path_ + "/decisions.json"; }
  std::string log() const { return path_ + "/train.log"; }
  std::string rank_log(int rank) const;  // of a rank above 0
  std::string metrics() const { return path_ + "/metrics.jsonl"; }  // reproducible numbers only
  std::string timing() const { return path_ + "/timing.jsonl"; }  // clock figures
  std::string status() const { return path_ + "/status.json"; }
  std::string layers() const { return path_ + "/layers.csv"; }
  std::string report() const { return path_ + "/report.md"; }
  std::string profile() const { return path_ + "/profile.md"; }  // of the last command with --profile
  std::string profile_data() const { return path_ + "/profile.json"; }
  std::string broken_images() const { return path_ + "/broken_images.json"; }  // that ended a session of the run
  std::string checkpoints() const { return path_ + "/checkpoints"; }

 private:
  explicit RunFolder(std::string path) : path_(std::move(path)) {}

  std::string path_;
};

// One line to the run's train.log for each override, "<what> with <override>", or "<what>" without any. Throws IoError naming the
// file.
void append_overrides(const RunFolder& folder, const std::string& what, std::span<const std::string> overrides);

}  // namespace tessera
