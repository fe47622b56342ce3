#include "layers/scores.h"

#include "core/device/precision.h"
#include "core/ops/cast.h"

namespace tessera {

Var scores(Module& network, const Tensor& x, const Context& context, DType compute) {
  return cast(network(cast(Var(x), compute), context), parameter_dtype(compute));
}

}  // namespace tessera
