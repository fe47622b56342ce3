// The training step that is timed: a network, its task, made-up samples of that, and an optimiser.
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

// bench/named_workloads.h makes them.
struct WorkloadConfig {
  std::string model;
  std::string shape;  // of a sample, for people: "32x32x3"
  std::vector<Field> sample;  // what the network reads, and what it is to answer
  const Task* task = nullptr;  // must outlive all that is made of this
  std::function<std::unique_ptr<Module>(const Shape& input)> build;
  Value torch = {};  // a map: the description of the network in bench/torch_transformers.py; null: it reads an export
  OptimizerConfig optimizer;
  std::int64_t batch = 1;
  std::int64_t batches = 4;  // used in turn
  std::uint64_t seed = 1;
  std::string precision = "f32";
  Device device = {};
};

using Change = std::function<void(std::unique_ptr<Module>&)>;

class TrainWorkload {
 public:
  // `change` is made to the initialised network before the first step.
  explicit TrainWorkload(const WorkloadConfig& config, const Change& change = {});

  // The network as it is now and the batches, for a rival that is to start from the same numbers: an export for PyTorch, or
  // network.json and weights.safetensors; batches.safetensors (x0, y0, x1, ..., images NHWC), and config.json with the
  // optimiser's name and settings.
  void write_inputs(const std::filesystem::path& directory);

  // On a GPU the steps are queued one behind the other, as in training: each counts for its share of the time until all are done,
  // and has the mean loss of all.
  Steps run(std::int64_t count);

  // Weights, their gradients, and the optimiser's moments.
  std::int64_t state_bytes() const;
  // FLOPs of a step's contractions, two for each multiply-add. The backward has twice as many as the forward.
  double flops() const;

 private:
  Steps run_queued(std::int64_t count);
  const Batch& next_batch() const { return batches_[static_cast<std::size_t>(step_) % batches_.size()]; }

  WorkloadConfig config_;
  std::unique_ptr<Module> model_;
  std::vector<Batch> batches_;
  std::unique_ptr<StageTrainer> trainer_;
  std::int64_t step_ = 0;
};

// Random values of a field, other ones for each batch: normal, or whole numbers below its limit.
void fill_field(const Tensor& part, const Field& field, std::uint64_t seed, std::uint64_t batch);

// For a rival that builds a transformer (bench/torch_transformers.py): network.json and weights.safetensors, with our names.
void write_transformer(Module& network, const Value& description, const std::filesystem::path& directory);

}  // namespace tessera::bench
