// The log of a rank above 0, train.rank1.log beside the run's train.log: when and where it computed, how long its steps took,
// its warnings, and the error that ended it.
#pragma once

#include <fstream>
#include <mutex>
#include <string>
#include <string_view>

namespace tessera {

class RankLog {
 public:
  // Appends to the file from now on; lines before are dropped. Where the file cannot be opened, because this machine does not see
  // the run's folder, it warns and drops all.
  void open(const std::string& path);
  void line(std::string_view text);  // behind the time, in UTC; from any thread

 private:
  std::mutex mutex_;
  std::ofstream file_;
};

}  // namespace tessera
