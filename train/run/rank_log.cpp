#include "train/run/rank_log.h"

#include <array>
#include <ctime>

#include "core/support/error.h"
#include "core/support/log.h"

namespace tessera {

void RankLog::open(const std::string& path) {
  const bool opened = [&] {
    const std::lock_guard lock(mutex_);
    file_.open(path, std::ios::app);
    return file_.is_open();
  }();
  if (!opened) log_warning(str("cannot open ", path, "; the log of this rank is not kept"));
}

void RankLog::line(std::string_view text) {
  const std::lock_guard lock(mutex_);
  if (!file_.is_open()) return;
  const std::time_t now = std::time(nullptr);
  std::tm utc{};
  gmtime_r(&now, &utc);
  std::array<char, 32> time{};
  std::strftime(time.data(), time.size(), "%Y-%m-%dT%H:%M:%SZ ", &utc);
  file_ << time.data() << text << std::endl;  // flushed, because the process may be killed at any moment
}

}  // namespace tessera
