#include "train/run/progress.h"

#include <cmath>
#include <cstdio>

#include "core/support/error.h"

namespace tessera {

std::string format_seconds(double seconds) {
  const auto total = static_cast<long long>(std::llround(std::fmax(seconds, 0.0)));
  char text[32];
  if (total >= 3600) {
    std::snprintf(text, sizeof text, "%lldh%02lldm", total / 3600, total / 60 % 60);
  } else if (total >= 60) {
    std::snprintf(text, sizeof text, "%lldm%02llds", total / 60, total % 60);
  } else {
    std::snprintf(text, sizeof text, "%llds", total);
  }
  return text;
}

Progress::Progress(std::ostream* out, bool terminal, const std::string& log)
    : out_(out), terminal_(terminal), log_(log, std::ios::app) {
  TESSERA_CHECK(log_.is_open(), IoError, "cannot open ", log, " for writing");
}

void Progress::begin(const std::string& label, std::int64_t first_step, std::int64_t total_steps, std::int64_t units_per_step,
                     std::string_view unit) {
  label_ = label;
  first_ = first_step;
  total_ = total_steps;
  units_ = units_per_step;
  unit_ = unit;
  start_ = Clock::now();
  drawn_ = start_;
}

double Progress::seconds() const { return std::chrono::duration<double>(Clock::now() - start_).count(); }

double Progress::units_per_second(std::int64_t step) const {
  const double elapsed = seconds();
  return elapsed > 0 ? static_cast<double>((step - first_) * units_) / elapsed : 0.0;
}

double Progress::seconds_left(std::int64_t step) const {
  const double rate = units_per_second(step);
  return rate > 0 ? static_cast<double>((total_ - step) * units_) / rate : 0.0;
}

void Progress::step(std::int64_t step, std::optional<double> loss) {
  if (out_ == nullptr || !terminal_) return;
  const auto now = Clock::now();
  if (now - drawn_ < std::chrono::milliseconds(100) && step < total_) return;
  drawn_ = now;
  constexpr int width = 24;
  const int filled = total_ > 0 ? static_cast<int>(width * step / total_) : width;
  char loss_text[40] = "";
  if (loss) std::snprintf(loss_text, sizeof loss_text, "loss %.4f  ", *loss);
  char text[200];
  std::snprintf(text, sizeof text, "%lld/%lld  %s%.0f %s  ETA %s", static_cast<long long>(step), static_cast<long long>(total_),
                loss_text, units_per_second(step), unit_.c_str(), format_seconds(seconds_left(step)).c_str());
  *out_ << '\r' << label_ << " [" << std::string(static_cast<std::size_t>(filled), '=')
        << std::string(static_cast<std::size_t>(width - filled), ' ') << "] " << text << "\033[K" << std::flush;
  dirty_ = true;
}

void Progress::record(const std::string& text) { log_ << text << std::endl; }

void Progress::line(const std::string& text) {
  record(text);
  if (out_ == nullptr) return;
  if (dirty_) *out_ << "\r\033[K";
  dirty_ = false;
  *out_ << text << std::endl;
}

}  // namespace tessera
