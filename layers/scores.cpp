#include "layers/scores.h"

#include "core/device/precision.h"
#include "core/ops/cast.h"

namespace tessera {

Var scores(Module& network, const Tensor& x, const Context& context, DType compute) {
  const Var input = is_floating(x.dtype()) ? cast(Var(x), compute) : Var(x);
  return cast(network(input, context), parameter_dtype(compute));
}

}  // namespace tessera
