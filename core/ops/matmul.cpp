#include "core/ops/matmul.h"

#include "core/device/dispatch.h"
#include "core/ops/dense_operands.h"
#include "core/ops/reduce.h"

namespace tessera {
namespace {

Shape leading(const Shape& shape) { return Shape(std::span(shape.begin(), static_cast<std::size_t>(shape.rank() - 2))); }

Shape with_matrix(const Shape& lead, std::int64_t rows, std::int64_t columns) { return lead.append(rows).append(columns); }

Tensor as_batch(const Tensor& x) { return x.reshape({leading(x.shape()).numel(), x.dim(-2), x.dim(-1)}); }

// The matrices of x repeated over the leading dimensions `lead`.
Tensor repeat(const Tensor& x, const Shape& lead) { return x.expand(with_matrix(lead, x.dim(-2), x.dim(-1))).contiguous(); }

Tensor multiply(const Tensor& a, const Tensor& b, const MatmulOptions& options) {
  const std::int64_t rows = a.dim(options.transpose_a ? -1 : -2);
  const std::int64_t columns = b.dim(options.transpose_b ? -2 : -1);
  Tensor y = Tensor::empty({a.dim(0), rows, columns}, a.dtype(), a.device());
  TESSERA_DISPATCH(a.device(), matmul, a, b, y, options);
  return y;
}

class MatmulOp final : public Op {
 public:
  MatmulOp(Tensor a, Tensor b, MatmulOptions options) : a_(std::move(a)), b_(std::move(b)), options_(options) {}
  std::string_view name() const override { return "matmul"; }

  Grads backward(const Tensor& grad_y, NeedsGrad needs) override {
    const Shape lead = leading(grad_y.shape());
    const Tensor g = as_batch(grad_y);
    const auto [ta, tb] = options_;
    Grads grads(2);
    if (needs[0]) {
      const Tensor b = as_batch(repeat(b_, lead));
      const Tensor grad = ta ? multiply(b, g, {tb, true}) : multiply(g, b, {false, !tb});
      grads[0] = sum_to(grad.reshape(with_matrix(lead, a_.dim(-2), a_.dim(-1))), a_.shape());
    }
    if (needs[1]) {
      const Tensor a = as_batch(repeat(a_, lead));
      const Tensor grad = tb ? multiply(g, a, {true, ta}) : multiply(a, g, {!ta, false});
      grads[1] = sum_to(grad.reshape(with_matrix(lead, b_.dim(-2), b_.dim(-1))), b_.shape());
    }
    return grads;
  }

  std::int64_t multiply_adds(const Shape& y) const override { return y.numel() * a_.dim(options_.transpose_a ? -2 : -1); }

 private:
  Tensor a_;
  Tensor b_;
  MatmulOptions options_;
};

// One matrix b for a whole batch of a that is not transposed: the batch is folded into the rows of one larger product.
class FoldedMatmulOp final : public Op {
 public:
  FoldedMatmulOp(Tensor a, Tensor b, bool transpose_b) : a_(std::move(a)), b_(std::move(b)), transpose_b_(transpose_b) {}
  std::string_view name() const override { return "matmul"; }

  Tensor forward() const { return multiply(fold(a_), as_batch(b_), {false, transpose_b_}); }

  Grads backward(const Tensor& grad_y, NeedsGrad needs) override {
    const Tensor g = fold(grad_y);
    Grads grads(2);
    if (needs[0]) grads[0] = multiply(g, as_batch(b_), {false, !transpose_b_}).reshape(a_.shape());
    if (needs[1]) {
      const Tensor a = fold(a_);
      grads[1] = (transpose_b_ ? multiply(g, a, {true, false}) : multiply(a, g, {true, false})).reshape(b_.shape());
    }
    return grads;
  }

  std::int64_t multiply_adds(const Shape& y) const override { return y.numel() * a_.dim(-1); }

 private:
  static Tensor fold(const Tensor& x) { return x.reshape({1, leading(x.shape()).numel() * x.dim(-2), x.dim(-1)}); }

  Tensor a_;
  Tensor b_;
  bool transpose_b_;
};

void check(const Tensor& a, const Tensor& b, const MatmulOptions& options) {
  TESSERA_CHECK(a.rank() >= 2 && b.rank() >= 2, ShapeError, "matmul: too few dimensions: a is ", a.shape(), ", b is ", b.shape(),
                "; both need at least 2");
  check_operands("matmul", {{"a", a}, {"b", b}});
  const int inner_a = options.transpose_a ? -2 : -1;
  const int inner_b = options.transpose_b ? -1 : -2;
  TESSERA_CHECK(a.dim(inner_a) == b.dim(inner_b), ShapeError, "matmul: inner dimensions differ: a is ", a.shape(), ", b is ",
                b.shape(), "; a.dim(", inner_a, ")=", a.dim(inner_a), " must equal b.dim(", inner_b, ")=", b.dim(inner_b));
}

}  // namespace

Var matmul(const Var& a, const Var& b, const MatmulOptions& options) {
  check(a.value(), b.value(), options);
  const Tensor x = a.value().contiguous();
  const Tensor w = b.value().contiguous();
  const Shape lead = broadcast_shapes(leading(x.shape()), leading(w.shape()), "matmul");
  const Shape shape = with_matrix(lead, x.dim(options.transpose_a ? -1 : -2), w.dim(options.transpose_b ? -2 : -1));
  if (!options.transpose_a && leading(w.shape()).numel() == 1 && leading(x.shape()) == lead) {
    auto op = std::make_unique<FoldedMatmulOp>(x, w, options.transpose_b);
    Tensor y = op->forward().reshape(shape);
    return record(std::move(op), {a, b}, std::move(y));
  }
  Tensor y = multiply(as_batch(repeat(x, lead)), as_batch(repeat(w, lead)), options).reshape(shape);
  return record(std::make_unique<MatmulOp>(x, w, options), {a, b}, std::move(y));
}

}  // namespace tessera
