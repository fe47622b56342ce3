// The head of experiments on 480 glyphs, 13 steps an epoch, that are over in seconds and have the same bytes every time.
#pragma once

#include <string>
#include <string_view>

#include "core/support/error.h"

namespace tessera::testing {

// With convolutions conv1 of 8 and conv2 of 16 channels, the layers `more` and fc. `settings`: further blocks.
inline std::string small_glyphs(std::string_view name, std::string_view settings, std::string_view more = "") {
  return str("version: 1\nname: ", name, R"(
seed: 5
threads: {compute: 2, loader: 0}
deterministic: true
data: {name: glyphs, count: 480, test_count: 60, batch: 32, val: 0.1}
optimizer: {name: sgd, lr: 0.05, momentum: 0.9}
model:
  name: layers
  layers:
    - {conv2d: {out: 8, kernel: 3, stride: 4, padding: 1, bias: false, name: conv1}}
    - batch_norm
    - relu
    - {conv2d: {out: 16, kernel: 3, padding: 1, bias: false, name: conv2}}
    - relu
)",
             more, "    - global_avg_pool\n    - {linear: {out: 10, name: fc}}\n", settings);
}

}  // namespace tessera::testing
