#include "core/cpu/core_wait.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <optional>
#include <sstream>
#include <string>
#include <system_error>

#include "core/device/device_work.h"

namespace tessera::cpu {
namespace {

// The file has nanoseconds on a core, nanoseconds of waiting for a core, and time slices. The kernel removes it with its thread.
double waited(int file) {
  std::array<char, 96> text{};
  if (::pread(file, text.data(), text.size() - 1, 0) <= 0) return 0;
  std::istringstream numbers(text.data());
  double ran = 0, waited = 0;
  return numbers >> ran >> waited ? 1e-9 * waited : 0;
}

}  // namespace

CoreWait::CoreWait() {
  std::error_code error;
  for (std::filesystem::directory_iterator task("/proc/self/task", error), end; !error && task != end; task.increment(error)) {
    const std::string path = task->path() / "schedstat";
    auto file = std::make_unique<FileDescriptor>(operating_system(), path.c_str(), O_RDONLY);
    if (file->get() >= 0) threads_.push_back(std::move(file));
  }
}

std::vector<double> CoreWait::waits() const {
  if (const std::optional<double> planned = HostClock::waited()) return {*planned};
  std::vector<double> waits;
  for (const auto& thread : threads_) waits.push_back(waited(thread->get()));
  return waits;
}

void CoreWait::begin() { before_ = waits(); }

double CoreWait::seconds() const {
  const std::vector<double> now = waits();
  double longest = 0;
  for (std::size_t i = 0; i < std::min(now.size(), before_.size()); ++i) longest = std::max(longest, now[i] - before_[i]);
  return longest;
}

}  // namespace tessera::cpu
