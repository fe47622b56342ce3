// A mode that finds the op in which numbers stop being numbers. It costs a pass over every tensor: for replays, not for training.
#pragma once

#include <span>

#include "core/autograd/var.h"

namespace tessera {

// While one lives, on its thread: the output of every recorded op and every gradient that a sweep makes is checked, and the first
// NaN or Inf throws NumericError with the op, the module that ran it, the direction, the element, and whether what the op was
// given was finite:
//   relu (layer2.0) forward made the first Inf: output f32 [2, 3] at [0, 1] is inf; its inputs were finite, up to 3e+38 in
//   magnitude
class NumericCheck {
 public:
  NumericCheck() noexcept;
  ~NumericCheck();
  NumericCheck(const NumericCheck&) = delete;
  NumericCheck& operator=(const NumericCheck&) = delete;

  static bool active() noexcept;

 private:
  bool previous_;
};

// Ends the mode on its thread for as long as it lives, where `paused`: around numbers that may overflow and are dealt with.
class NumericCheckPause {
 public:
  explicit NumericCheckPause(bool paused) noexcept;
  ~NumericCheckPause();
  NumericCheckPause(const NumericCheckPause&) = delete;
  NumericCheckPause& operator=(const NumericCheckPause&) = delete;

 private:
  bool previous_;
};

// What record and the sweep call while the mode is active.
namespace numeric_check {
void forward(const Op& op, std::span<const Var> inputs, const Tensor& y);
void backward(const Node& node, const Tensor& grad_y, const Grads& grads);
void sum(const Node& node, const Tensor& total);  // of the gradients of the node's value
}  // namespace numeric_check

}  // namespace tessera
