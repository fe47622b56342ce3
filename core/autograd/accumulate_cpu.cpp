#include "core/autograd/accumulate.h"
#include "core/cpu/map.h"

namespace tessera::cpu {

void accumulate(const Tensor& target, const Tensor& source) {
  map("accumulate", [](auto a, auto b) { return a + b; }, target, target, source);
}

}  // namespace tessera::cpu
