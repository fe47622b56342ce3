// Distillation: a stage learns what an earlier stage's network answers, beside the labels.
#pragma once

#include "core/nn/hook.h"
#include "train/experiment.h"

namespace tessera {

// loss = (1 - w) loss + w T^2 KL(softmax(t / T) || softmax(s / T)), the mean over answers, with the teacher's scores t and the
// network's s (Hinton, Vinyals, Dean, "Distilling the knowledge in a neural network", 2015, section 2). The teacher answers in
// inference mode and is not trained.
class Distill final : public Hook {
 public:
  static constexpr const char* kName = "distill";

  // `teacher` is on the model's device and outlives the hook. `compute`: what activations are in.
  Distill(const DistillConfig& config, Module& teacher, DType compute) : config_(config), teacher_(teacher), compute_(compute) {}

  std::string_view name() const override { return kName; }
  Var loss(const Var& value, const Var& scores, std::span<const NamedTensor> parts) override;
  State state() const override { return {}; }  // the run keeps the teacher
  void load_state(const State&) override {}

 private:
  DistillConfig config_;
  Module& teacher_;
  DType compute_;
};

}  // namespace tessera
