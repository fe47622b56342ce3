#include "tests/end_to_end/tiny_experiment.h"

#include "core/support/error.h"

namespace tessera::testing {

std::string tiny_experiment(std::string_view rest, const TinyOptions& options) {
  return str("version: 1\nname: tiny\nseed: 1\nthreads: ", options.threads, R"(
model:
  name: layers
  layers:
    - {conv2d: {out: 8, kernel: 3, stride: 2, name: conv1}}
)",
             options.batch_norm ? "    - batch_norm\n" : "", R"(    - relu
    - {conv2d: {out: 8, kernel: 3, stride: 2, name: conv2}}
    - global_avg_pool
    - {linear: {out: )",
             options.classes, ", name: fc}}\n", rest);
}

}  // namespace tessera::testing
