// PyTorch training the network of a TrainWorkload under one of its settings.
#pragma once

#include <vector>

#include "bench/rivals/torch_finalists.h"
#include "bench/rivals/torch_rival.h"

namespace tessera::bench {

// Losses of our first steps, and by what fraction of its own value a rival's loss may differ.
struct FirstLosses {
  std::vector<double> values;
  double tolerance;
};

class TrainRival {
 public:
  // Takes as many steps as there are losses. Throws NumericError where it has other ones.
  TrainRival(const TorchProgram& program, const TorchSettings& settings, const FirstLosses& ours);

  TorchRival& torch() noexcept { return torch_; }
  const std::vector<double>& losses() const noexcept { return losses_; }  // of the first steps
  std::vector<double> run(std::int64_t count) { return torch_.run(count).ms; }  // milliseconds of each step

 private:
  TorchRival torch_;
  std::vector<double> losses_;
};

struct TrainSweepOptions {
  std::int64_t steps = 6;  // of each setting
  bool images = true;  // else there are no layouts to choose
  std::string only = {};  // the settings alone whose text has it: "eager, contiguous, avx2"
};
// Short runs, each in a process of its own, under every setting with sleeping threads, and under the best with ones that spin
// before they sleep; on a GPU compiled without graphs too, where it fails with them. The rows have "memory_kib" too. Throws
// ConfigError where `only` is in no setting.
TorchSweep<TorchSettings> sweep_training(const TorchProgram& program, const TrainSweepOptions& options, const FirstLosses& ours);

// On a GPU: neither compiled nor recorded, as torch comes.
inline bool is_eager(const TorchSettings& settings) { return !settings.compiled && !settings.graphs; }
// Makes the fastest eager setting of a sweep on a GPU a finalist, even if it is slow: one target compares with eager PyTorch.
void add_eager(TorchSweep<TorchSettings>& swept);

// The least that a row of the sweep needs: the fastest settings are not those that need least.
std::int64_t least_memory_kib(const Value& rows);

}  // namespace tessera::bench
