// The loss block of an experiment file.
#pragma once

#include "core/config/fields.h"

namespace tessera {

struct LossConfig {
  double label_smoothing = 0;
  void fields(Fields& f);
};

}  // namespace tessera
