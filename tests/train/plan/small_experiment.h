// Experiments on a few drawn images, for tests of what `tessera plan` says of them.
#pragma once

#include <string>

#include "core/support/error.h"
#include "train/config/yaml.h"
#include "train/experiment.h"

namespace tessera::testing {

inline constexpr const char* kConv =
    "model: {name: layers, layers: [{conv2d: {out: 16, kernel: 3, padding: 1, name: conv1}}, batch_norm, relu,\n"
    "  {conv2d: {out: 24, kernel: 3, stride: 2, padding: 1, name: conv2}}, relu, global_avg_pool, {linear: {out: 10}}]}\n";

inline Experiment experiment(const std::string& rest, int batch = 64) {
  const std::string text = str(
      "version: 1\nname: x\nthreads: {compute: 2, loader: 0}\ndata: {name: glyphs, count: 300, test_count: 40, batch: ", batch,
      "}\n", rest);
  return parse_experiment(parse_yaml(text, "x.yaml"));
}

inline constexpr const char* kTrain = "stages: [{name: a, train: 1e}]\n";

}  // namespace tessera::testing
