#include "core/ops/cast.h"

#include "core/support/error.h"

namespace tessera {
namespace {

class CastOp final : public Op {
 public:
  explicit CastOp(DType from) : from_(from) {}
  std::string_view name() const override { return "cast"; }
  Grads backward(const Tensor& grad_y, NeedsGrad) override { return {grad_y.to(from_)}; }

 private:
  DType from_;
};

}  // namespace

Var cast(const Var& x, DType dtype) {
  TESSERA_CHECK(is_floating(x.dtype()) && is_floating(dtype), DTypeError, "cast: x is ", describe(x.value()), ", asked as ",
                dtype, "; both must be floating");
  if (x.dtype() == dtype) return x;
  return record(std::make_unique<CastOp>(x.dtype()), {x}, x.value().to(dtype));
}

}  // namespace tessera
