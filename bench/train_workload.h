// The training step that is timed: a named network on synthetic colour images, SGD with momentum and weight decay.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "train/run/stage_trainer.h"

namespace tessera::bench {

// What a run of steps reports, one entry per step.
struct Steps {
  std::vector<double> ms;
  std::vector<double> loss;
};

struct WorkloadConfig {
  std::string model = "resnet20";
  std::int64_t side = 32;  // of the square images
  std::int64_t classes = 10;
  std::int64_t batch = 128;
  std::int64_t batches = 4;  // used in turn
  std::uint64_t seed = 1;
  std::string precision = "f32";
  Device device = {};
  SgdConfig optimizer{.lr = 0.05, .momentum = 0.9, .weight_decay = 5e-4};
};

// "resnet20": batch 128 of 32x32 with 10 classes; "resnet18": batch 16 of 224x224 with 1000. On a GPU "resnet18" and "resnet50"
// at batch 256. Throws ConfigError on others.
WorkloadConfig workload_named(const std::string& model, Device device = {});

class TrainWorkload {
 public:
  // `change` is made to the initialised network before the first step.
  explicit TrainWorkload(const WorkloadConfig& config, const std::function<void(std::unique_ptr<Module>&)>& change = {});

  // The network as it is now and the batches, for a rival that is to start from the same numbers: an export for PyTorch,
  // batches.safetensors (x0, y0, x1, ..., images NHWC), and config.json with SGD's settings.
  void write_inputs(const std::filesystem::path& directory);

  // On a GPU the steps are queued one behind the other, as in training: each counts for its share of the time until all are done,
  // and has the mean loss of all.
  Steps run(std::int64_t count);

 private:
  Steps run_queued(std::int64_t count);
  const Batch& next_batch() const { return batches_[static_cast<std::size_t>(step_) % batches_.size()]; }

  WorkloadConfig config_;
  std::unique_ptr<Module> model_;
  std::vector<Batch> batches_;
  std::unique_ptr<StageTrainer> trainer_;
  std::int64_t step_ = 0;
};

}  // namespace tessera::bench
