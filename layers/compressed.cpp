#include "layers/compressed.h"

namespace tessera {

void copy_bias(const Parameter* from, Parameter* to) {
  if (from == nullptr) return;
  to->set_value(from->value().clone());
  to->set_mask(from->mask());
  to->set_trainable(from->trainable());
}

}  // namespace tessera
