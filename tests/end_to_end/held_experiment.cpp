#include "tests/end_to_end/held_experiment.h"

#include "core/config/value.h"
#include "core/support/error.h"
#include "tests/end_to_end/program.h"

namespace tessera::testing {

std::string held_experiment(std::string_view rest) {
  return str(R"(
version: 1
name: held
seed: 5
data: {name: glyphs, count: 960, test_count: 60, batch: 32, val: 0.1}
optimizer: {name: sgd, lr: 0.05, momentum: 0.9}
log_every: 3
model:
  name: layers
  layers:
    - {conv2d: {out: 16, kernel: 3, stride: 4, padding: 1, bias: false, name: conv1}}
    - batch_norm
    - relu
    - {conv2d: {out: 32, kernel: 3, padding: 1, bias: false, name: conv2}}
    - batch_norm
    - relu
    - global_avg_pool
    - {linear: {out: 10, name: fc}}
)",
             rest);
}

std::string without_conv1(const std::string& run) {
  Value file = parse_json(read_bytes(run + "/decisions.json"), "decisions.json");
  for (Value::Entry& entry : file.find("decisions")->as_map()) {
    if (!entry.key.starts_with("keep.")) continue;
    const bool conv1 = entry.key.starts_with("keep.layer ") && entry.key.find("\"in\":1,") != std::string::npos;
    entry.value = str(conv1 ? "not-faster" : "faster", " dense_ms 2 compressed_ms 1 ratio 2 low 1.5 high 2.5");
  }
  return to_json(file);
}

}  // namespace tessera::testing
