// What a run computes in. The one place that says which number formats a device's kernels take.
#pragma once

#include <array>
#include <span>
#include <string_view>

#include "core/device/device.h"
#include "core/dtype.h"

namespace tessera {

// "f32", "tf32" (f32 tensors, products with 10 bits of mantissa), "bf16", "f16".
std::span<const std::string_view> precision_names();

// The dtype of what stands beside activations of dtype `activations` and keeps the precision of training: f32 for bf16 and f16,
// otherwise the same. It is the dtype of
//   - weights, biases, gamma and beta, and of their gradients (and so of the optimiser's state, averages and checkpoints);
//   - the statistics of batch norm and layer norm, running ones included;
//   - the logits that a loss reads, and the loss.
// Activations, their gradients and the copies of weights that a product makes have dtype `activations` itself. Kernels
// compute in f32 registers and round once, on store; sums over many terms run in f32 or double.
DType parameter_dtype(DType activations);

// The ops whose operands are f32 (or f64) in every precision; they refuse half types. Logits are widened in front of a loss, and
// what an optimiser reads and writes has parameter_dtype().
inline constexpr std::array<std::string_view, 9> kUnroundedOps{
    "adamw", "admm", "clip_grad_norm", "cross_entropy", "ema", "embedding", "mse", "sgd", "unscale_gradients"};

// The dtype of activations and of the products' operands. Throws ConfigError when the device has no kernels for the precision,
// naming those it has ("f16 is not supported on cpu yet; supported: f32, bf16"), when the processor has no instructions for it,
// naming them, or when it is not a name.
DType compute_dtype(std::string_view precision, const Device& device);

// While one lives, products of f32 on a GPU round operands to tf32 where it is `allowed`; the newest decides, without one they
// do not. Not for several threads at once.
class Tf32Products {
 public:
  explicit Tf32Products(bool allowed) noexcept;
  ~Tf32Products();
  Tf32Products(const Tf32Products&) = delete;
  Tf32Products& operator=(const Tf32Products&) = delete;

 private:
  bool outer_;
};
bool tf32_products() noexcept;

}  // namespace tessera
