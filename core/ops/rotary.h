// Rotary position embeddings (Su et al., "RoFormer: Enhanced Transformer with Rotary Position Embedding", 2021, equation 34),
// with pairs of elements half a head apart.
#pragma once

#include <cstdint>

#include "core/autograd/var.h"

namespace tessera {

struct RotaryOptions {
  std::int64_t heads;  // the first ones of x are rotated; the others are copied
  std::int64_t offset = 0;  // position of the first one in x
  double base = 10000;
};

// x [batch, positions, heads, width] -> y as x. In a rotated head, elements i and i + width / 2 at position p are turned by the
// angle p base^(-2 i / width): (a, b) -> (a cos - b sin, b cos + a sin). Sines are computed in double. Saves the table of them
// alone; grad_x is g turned back. Throws ShapeError unless x has four dimensions and an even width, ConfigError unless 1 <=
// options.heads <= heads, offset >= 0 and base > 0, DTypeError unless f32, f64 or bf16 (f16 on a GPU).
Var rotary(const Var& x, const RotaryOptions& options);

// table [2, positions, width / 2], of parameter_dtype(): cosines and sines of the positions from `offset` on. Tensors are
// contiguous. rotary_turn: `back` turns by the negative angle; y may be x.
namespace cpu {
void rotary_table(std::int64_t offset, double base, const Tensor& table);
void rotary_turn(const Tensor& x, const Tensor& table, std::int64_t heads, bool back, const Tensor& y);
}  // namespace cpu
namespace cuda {
void rotary_table(std::int64_t offset, double base, const Tensor& table);
void rotary_turn(const Tensor& x, const Tensor& table, std::int64_t heads, bool back, const Tensor& y);
}  // namespace cuda

}  // namespace tessera
