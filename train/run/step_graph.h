// The device work of a training step, recorded once and replayed: the host then queues one graph in place of hundreds of kernels.
// Decides which steps run eagerly, which one is recorded and when to record anew. Replayed or not, the same kernels run in the
// same order on the same numbers.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "core/device/device_work.h"
#include "train/data/batch.h"

namespace tessera {

class StepGraph {
 public:
  // After these steps optimiser state, libraries' plans and timed choices exist. A recording may not make them.
  static constexpr std::int64_t kEagerSteps = 2;

  // Records work without running it, as record_graph() does.
  using Recorder = std::function<std::unique_ptr<DeviceGraph>(const std::function<void()>& work)>;

  // Without a recorder every step runs eagerly.
  explicit StepGraph(Recorder recorder = {}) : recorder_(std::move(recorder)) {}

  struct Work {
    std::function<void(const Batch&)> run;  // all that a step gives the device after its values were published
    std::function<void()> abandon;  // drops what a run that was broken off has left on the host
  };
  enum class Took { eager, recorded, replayed };

  // One step. `memory` lists where the model's values lie: a recording holds for these addresses only. A batch of another shape
  // than the recorded one runs eagerly, so that the short one at an epoch's end costs no recording; kEagerSteps of them in a row
  // make the next one record anew. While numbers are being checked or a profile is taken steps run eagerly. A recording that
  // fails is told to the log, once, and every step from then on runs eagerly.
  Took run(const Batch& batch, const std::vector<const void*>& memory, const Work& work);

  // Before the model or its hooks change.
  void forget();

 private:
  bool matches(const Batch& batch, const std::vector<const void*>& memory) const;
  bool warms_up(const Batch& batch);
  bool record(const Batch& batch, const std::vector<const void*>& memory, const Work& work);

  Recorder recorder_;
  std::unique_ptr<DeviceGraph> graph_;
  Batch inputs_;  // what the graph reads
  std::vector<const void*> memory_;  // where the values lay when it was recorded
  std::vector<Field> eager_fields_;  // of the eager steps just taken
  std::int64_t eager_samples_ = 0;
  std::int64_t eager_steps_ = 0;  // of those in a row
};

// The recorder of a device: none on the CPU, and none where the environment has TESSERA_GRAPH=0.
StepGraph::Recorder step_recorder(Device device);

}  // namespace tessera
