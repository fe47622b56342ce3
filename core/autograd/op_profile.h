// What record and the sweep tell an active Profile: which op the time since the last charge went to.
#pragma once

#include <span>

#include "core/autograd/var.h"
#include "core/support/profile.h"

namespace tessera::op_profile {

// Bytes are those of the operands and results, each counted once: of a forward the inputs and y, of a backward the gradient of y,
// the inputs and their gradients. Where nothing new was written (views) they are 0.
void forward(Profile& profile, const Op& op, std::span<const Var> inputs, const Tensor& y);
void backward(Profile& profile, const Node& node, const Tensor& grad_y, NeedsGrad needs, const Grads& grads);
// Books the addition of grad_y to a sum over other uses. It touches as many bytes of the sum as grad_y has.
void added(Profile& profile, const Node& node, const Tensor& grad_y);
void sum(Profile& profile, const Node& node, const Tensor& total);  // of the gradients of the node's value

}  // namespace tessera::op_profile
