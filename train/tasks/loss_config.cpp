#include "train/tasks/loss_config.h"

namespace tessera {

void LossConfig::fields(Fields& f) {
  f.add("label_smoothing", label_smoothing,
        {.help = "weight spread evenly over all answers",
         .range = {.min = 0, .max = 1, .open_max = true},
         .example = "0.1",
         .observable = "bytes"});
}

}  // namespace tessera
