#include "train/run/step_graph.h"

#include <cstdlib>
#include <exception>
#include <string_view>
#include <utility>

#include "core/autograd/numeric_check.h"
#include "core/support/error.h"
#include "core/support/log.h"
#include "core/support/profile.h"

namespace tessera {

bool StepGraph::matches(const Batch& batch, const std::vector<const void*>& memory) const {
  return graph_ && batch.samples() == inputs_.samples() && batch.fields() == inputs_.fields() && memory == memory_;
}

bool StepGraph::warms_up(const Batch& batch) {
  const std::vector<Field> fields = batch.fields();
  if (batch.samples() != eager_samples_ || fields != eager_fields_) eager_steps_ = 0;
  eager_samples_ = batch.samples();
  eager_fields_ = fields;
  return eager_steps_++ < kEagerSteps;
}

StepGraph::Took StepGraph::run(const Batch& batch, const std::vector<const void*>& memory, const Work& work) {
  Took took = Took::eager;
  if (recorder_ && !NumericCheck::active() && Profile::active() == nullptr) {
    if (graph_ && memory != memory_) forget();
    if (matches(batch, memory)) {
      took = Took::replayed;
      eager_steps_ = 0;
    } else if (!warms_up(batch) && record(batch, memory, work)) {
      took = Took::recorded;
    }
  }
  if (took == Took::eager) {
    work.run(batch);
    return took;
  }
  inputs_.copy_from(batch);
  graph_->replay();
  return took;
}

bool StepGraph::record(const Batch& batch, const std::vector<const void*>& memory, const Work& work) {
  forget();
  inputs_ = Batch::empty_like(batch);
  try {
    graph_ = recorder_([this, step = work.run] { step(inputs_); });
    memory_ = memory;
    return true;
  } catch (const std::exception& error) {
    log_warning(str("training steps are not recorded as a graph and run one kernel at a time: ", error.what()));
  }
  work.abandon();
  recorder_ = nullptr;
  forget();
  return false;
}

void StepGraph::forget() {
  graph_.reset();
  inputs_ = {};
  memory_.clear();
  eager_steps_ = 0;
}

StepGraph::Recorder step_recorder(Device device) {
  const char* const asked = std::getenv("TESSERA_GRAPH");
  if (device.is_cpu() || (asked != nullptr && std::string_view(asked) == "0")) return {};
  return [device](const std::function<void()>& work) { return record_graph(device, work); };
}

}  // namespace tessera
