// Adds two Vars through the installed library and follows the gradient back. Expected output: "sum 7, grad 1 1".
#include <cstdio>
#include <exception>
#include <memory>
#include <vector>

#include "core/autograd/accumulate.h"
#include "core/autograd/backward.h"
#include "core/autograd/op.h"
#include "core/autograd/var.h"
#include "core/tensor.h"

namespace {

// An op of the consumer's own, recorded from outside the library: y = a + b, so both gradients are grad_y.
class AddOp final : public tessera::Op {
 public:
  std::string_view name() const override { return "consumer_add"; }
  tessera::Grads backward(const tessera::Tensor& grad_y, tessera::NeedsGrad) override { return {grad_y, grad_y}; }
};

tessera::Var add(const tessera::Var& a, const tessera::Var& b) {
  tessera::Tensor y = a.value().clone();
  tessera::accumulate(y, b.value());
  return tessera::record(std::make_unique<AddOp>(), {a, b}, y);
}

}  // namespace

int main() {
  try {
    const tessera::Var a(tessera::Tensor::from(std::vector<float>{3}, {1}), true);
    const tessera::Var b(tessera::Tensor::from(std::vector<float>{4}, {1}), true);
    const tessera::Var y = add(a, b);
    tessera::backward(y);
    std::printf("sum %g, grad %g %g\n", y.value().item(), a.grad().item(), b.grad().item());
    return y.value().item() == 7 && a.grad().item() == 1 && b.grad().item() == 1 ? 0 : 1;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "consumer: %s\n", error.what());
    return 1;
  }
}
