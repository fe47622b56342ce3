// The training step that is timed: ResNet-20 on synthetic 32x32 colour images, SGD with momentum and weight decay, f32.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <vector>

#include "train/stage_trainer.h"

namespace tessera::bench {

// What a run of steps reports, one entry per step.
struct Steps {
  std::vector<double> ms;
  std::vector<double> loss;
};

struct WorkloadConfig {
  std::int64_t batch = 128;
  std::int64_t batches = 4;  // used in turn
  std::uint64_t seed = 1;
  SgdConfig optimizer{.lr = 0.05, .momentum = 0.9, .weight_decay = 5e-4};
};

class TrainWorkload {
 public:
  explicit TrainWorkload(const WorkloadConfig& config);

  // The weights as they are now and the batches, for a rival that is to start from the same bytes: weights.safetensors under
  // the model's parameter paths in its layouts (OHWI, images NHWC), batches.safetensors as x0, y0, x1, ..., config.json.
  void write_inputs(const std::filesystem::path& directory);

  Steps run(std::int64_t count);

 private:
  WorkloadConfig config_;
  std::unique_ptr<Module> model_;
  std::vector<Batch> batches_;
  std::unique_ptr<StageTrainer> trainer_;
  std::int64_t step_ = 0;
};

}  // namespace tessera::bench
