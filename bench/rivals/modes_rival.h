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

// Runs our side and takes every 97th value of its result, as torch_side.py takes those of PyTorch's.
std::vector<float> sampled_values(const Contestant& ours);

// Largest difference, of the largest value. Throws NumericError naming `rival` where it is above the tolerance.
inline constexpr double kValueTolerance = 1e-4;
double check_values(const std::vector<float>& ours, const std::vector<double>& theirs, const std::string& rival,
                    double tolerance = kValueTolerance);

class ModesRival {
 public:
  // Throws NumericError where its values are not `values` to `tolerance` of the largest.
  ModesRival(const TorchProgram& program, const ModeWay& way, const std::vector<float>& values,
             double tolerance = kValueTolerance);

  TorchRival& torch() noexcept { return torch_; }
  double value_difference() const noexcept { return value_difference_; }  // the largest, of the largest value
  std::vector<double> run(std::int64_t count);  // milliseconds of each forward

 private:
  ModeWay way_;
  TorchRival torch_;
  double value_difference_;
};

struct ModeSweepOptions {
  std::int64_t least_runs = 5;  // of each way
  bool one_thread = false;  // in the second pass: small work may be done faster so
  std::vector<TorchSettings> settings = all_torch_settings();  // of the first pass
  bool tuned_malloc = false;  // tried in the second pass, where no setting of the first has it
  bool other_isa = false;  // likewise ATen's other instruction set, where the processor has both
  double tolerance = kValueTolerance;  // of the values
  std::string only = {};  // the ways alone whose text has it: "eager, contiguous, avx2"
};

// Short runs of every way with sleeping threads, then of the best with ones that spin before they sleep and with what else the
// options say; a process for each of the settings. All must give our values; a mode that this torch cannot build is shown and
// left out. Throws ConfigError where `only` is in no way.
TorchSweep<ModeWay> sweep_ways(const TorchProgram& program, const ModeSweepOptions& options, const std::vector<float>& values);

// all_torch_settings() without tuned malloc, which is for the second pass, and without the layouts of images where there are
// none.
std::vector<TorchSettings> first_settings(bool images);

// Times our side beside the finalists of a sweep. `aside` is a further mode, no rival, under the settings of the fastest.
struct ModesComparison {
  TorchProgram program;
  ModeSweepOptions sweep = {};
  std::int64_t rounds = 30;
  std::string aside = {};
};
// Sets rounds, sweep_runs, tessera_ms, torch_ms, ratio (torch_ms / tessera_ms), torch_settings, torch_finalists,
// value_difference, torch, torch_sweep, torch_matmul_gflops, fma_peak_gflops, fma_peak_threads; with `aside` torch_aside {mode,
// ms} and aside_ratio, its time over ours. Throws NumericError when they compute different things, TorchMissing without torch.
void compare_with_modes(Value& row, const SelfTimed& ours, const std::vector<float>& values, const ModesComparison& how);

}  // namespace tessera::bench
