#include "core/autograd/accumulate.h"

#include "core/device/dispatch.h"

namespace tessera {

void accumulate(const Tensor& target, const Tensor& source) {
  TESSERA_CHECK(target.shape() == source.shape() && target.dtype() == source.dtype(), ShapeError, "accumulate: target is ",
                describe(target), ", source is ", describe(source));
  TESSERA_DISPATCH(target.device(), accumulate, target, source);
}

}  // namespace tessera
