// PyTorch answering the batch of an InferWorkload: one of its ways to run a folded network, under one of its settings.
#pragma once

#include <string>
#include <vector>

#include "bench/rivals/torch_finalists.h"
#include "bench/rivals/torch_rival.h"

namespace tessera::bench {

struct InferWay {
  TorchSettings settings;
  std::string mode;  // "eager", "optimized", ...: infer_bench_torch.py has the list
};
std::string to_string(const InferWay& way);
Value to_value(const InferWay& way);

class InferRival {
 public:
  // Throws NumericError where its logits are not `logits` to kLogitTolerance of the largest.
  InferRival(const TorchProgram& program, const InferWay& way, const std::vector<float>& logits);

  TorchRival& torch() noexcept { return torch_; }
  double logit_difference() const noexcept { return logit_difference_; }  // the largest, of the largest logit
  std::vector<double> run(std::int64_t count);  // milliseconds of each forward

 private:
  InferWay way_;
  TorchRival torch_;
  double logit_difference_;
};

// Largest difference, of the largest logit. Throws NumericError naming `rival` where it is above kLogitTolerance.
inline constexpr double kLogitTolerance = 1e-4;
double check_logits(const std::vector<float>& ours, const std::vector<double>& theirs, const std::string& rival);

struct InferSweepOptions {
  std::int64_t least_runs = 5;  // forwards of each way
  bool one_thread = false;  // in the second pass: a small batch may be answered faster so
};

// Short runs of every way with sleeping threads, then of the best with ones that spin before they sleep; a process for each of
// the settings. All must give our logits; a mode that this torch cannot build is shown and left out.
TorchSweep<InferWay> sweep_ways(const TorchProgram& program, const InferSweepOptions& options, const std::vector<float>& logits);

}  // namespace tessera::bench
