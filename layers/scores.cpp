#include "layers/scores.h"

#include "core/device/precision.h"
#include "core/ops/cast.h"
#include "core/support/error.h"

namespace tessera {

Var scores(Module& network, std::span<const NamedTensor> parts, const Context& context, DType compute) {
  TESSERA_CHECK(!parts.empty(), InternalError, "scores: no input is given");
  Context with_inputs = context;
  with_inputs.inputs = parts;
  with_inputs.compute = compute;
  const Tensor& x = parts.front().tensor;
  const Var input = is_floating(x.dtype()) ? cast(Var(x), compute) : Var(x);
  return cast(network(input, with_inputs), parameter_dtype(compute));
}

}  // namespace tessera
