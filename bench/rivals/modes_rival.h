// PyTorch computing what we do in one of the modes that its script offers (torch_side.py: Modes), under one of its settings.
#pragma once

#include <string>
#include <vector>

#include "bench/rivals/torch_finalists.h"
#include "bench/rivals/torch_rival.h"

namespace tessera::bench {

struct ModeWay {
  TorchSettings settings;
  std::string mode;  // "eager", "optimized", ...: the script has the list
};
std::string to_string(const ModeWay& way);
Value to_value(const ModeWay& way);

class ModesRival {
 public:
  // Throws NumericError where its values are not `values` to kValueTolerance of the largest.
  ModesRival(const TorchProgram& program, const ModeWay& way, const std::vector<float>& values);

  TorchRival& torch() noexcept { return torch_; }
  double value_difference() const noexcept { return value_difference_; }  // the largest, of the largest value
  std::vector<double> run(std::int64_t count);  // milliseconds of each forward

 private:
  ModeWay way_;
  TorchRival torch_;
  double value_difference_;
};

// Largest difference, of the largest value. Throws NumericError naming `rival` where it is above kValueTolerance.
inline constexpr double kValueTolerance = 1e-4;
double check_values(const std::vector<float>& ours, const std::vector<double>& theirs, const std::string& rival);

struct ModeSweepOptions {
  std::int64_t least_runs = 5;  // of each way
  bool one_thread = false;  // in the second pass: small work may be done faster so
  std::vector<TorchSettings> settings = all_torch_settings();  // of the first pass
  bool tuned_malloc = false;  // tried in the second pass, where no setting of the first has it
};

// Short runs of every way with sleeping threads, then of the best with ones that spin before they sleep and with what else the
// options say; a process for each of the settings. All must give our values; a mode that this torch cannot build is shown and
// left out.
TorchSweep<ModeWay> sweep_ways(const TorchProgram& program, const ModeSweepOptions& options, const std::vector<float>& values);

}  // namespace tessera::bench
