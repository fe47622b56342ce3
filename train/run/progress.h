// What a person watching a run sees: a bar with ETA on a terminal, plain lines elsewhere. The sink is the caller's.
#pragma once

#include <chrono>
#include <cstdint>
#include <fstream>
#include <optional>
#include <ostream>
#include <string>
#include <string_view>

namespace tessera {

class Progress {
 public:
  // `out` may be null: silent. On a terminal the current line is redrawn at most ten times a second. Full lines also go to the
  // file `log`, appended and flushed. Throws IoError when it cannot be opened.
  Progress(std::ostream* out, bool terminal, const std::string& log);

  void begin(const std::string& label, std::int64_t first_step, std::int64_t total_steps, std::int64_t units_per_step,
             std::string_view unit);  // as Task::throughput_unit()
  // Steps done so far in the stage; `loss` is the last one known.
  void step(std::int64_t step, std::optional<double> loss);
  void line(const std::string& text);  // a full line of its own
  void record(const std::string& text);  // the same, to the file alone: for what is shown elsewhere

  double seconds() const;  // since begin()
  double seconds_left(std::int64_t step) const;
  double units_per_second(std::int64_t step) const;

 private:
  using Clock = std::chrono::steady_clock;

  std::ostream* out_;
  bool terminal_;
  std::ofstream log_;
  std::string label_;
  std::int64_t first_ = 0;
  std::int64_t total_ = 0;
  std::int64_t units_ = 0;  // of a step
  std::string unit_;
  Clock::time_point start_;
  Clock::time_point drawn_;
  bool dirty_ = false;  // a redrawn line stands unfinished
};

std::string format_seconds(double seconds);  // "3h05m", "4m10s", "12s"

}  // namespace tessera
