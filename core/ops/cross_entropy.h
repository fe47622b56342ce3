// Cross entropy between logits and class labels.
#pragma once

#include "core/autograd/var.h"

namespace tessera {

struct CrossEntropyOptions {
  double label_smoothing = 0;        // in [0, 1): this share of the target is spread evenly over all classes
  std::int64_t ignore_index = -100;  // samples with this label do not count
};

// logits [n, classes], labels i64 [n] -> scalar: the mean over counted samples of
// -sum_k target_k log softmax(logits)_k, target = (1 - s) onehot(label) + s / classes; 0 when no sample counts.
// Fused and shifted by each row's maximum; a NaN in a counted row reaches the loss. Saves the logits, the labels and two numbers
// of each row. From them the backward makes the probabilities again: beside the logits only their gradient takes memory.
// grad_logits = g (softmax - target) / counted, 0 in ignored rows. Throws ShapeError on shapes that do not fit and on a label
// outside 0..classes-1, naming the sample, DTypeError or DeviceError on operands, ConfigError on the smoothing. A GPU is not
// waited for: there such a label makes the loss, and its own row of grad_logits, NaN.
Var cross_entropy(const Var& logits, const Tensor& labels, const CrossEntropyOptions& options = {});

// Kernels on contiguous tensors. row_sums [2, n]: of each row the largest element, and the sum of exp(x - largest).
namespace cpu {
void cross_entropy_forward(const Tensor& logits, const Tensor& labels, const CrossEntropyOptions& options, const Tensor& row_sums,
                           const Tensor& loss);
void cross_entropy_backward(const Tensor& grad_loss, const Tensor& logits, const Tensor& row_sums, const Tensor& labels,
                            const CrossEntropyOptions& options, const Tensor& grad_logits);
}  // namespace cpu
namespace cuda {
void cross_entropy_forward(const Tensor& logits, const Tensor& labels, const CrossEntropyOptions& options, const Tensor& row_sums,
                           const Tensor& loss);
void cross_entropy_backward(const Tensor& grad_loss, const Tensor& logits, const Tensor& row_sums, const Tensor& labels,
                            const CrossEntropyOptions& options, const Tensor& grad_logits);
}  // namespace cuda

}  // namespace tessera
