// What `tessera compress` reads: an experiment file, whose first stage with a block such as factorise is taken, or a smaller file
// with the same keys, which says nothing of data and training:
//
//   version: 1
//   model: {name: resnet20, classes: 10}
//   factorise: {layers: "layer[23].*.conv*", ranks: {macs: 0.4}}
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "train/experiment.h"

namespace tessera {

// The smaller file.
struct CompressConfig {
  std::int64_t version = 1;
  std::string device = "auto";
  std::string precision = "f32";
  bool deterministic = false;
  ThreadsConfig threads;
  std::vector<std::int64_t> input;  // channels, height and width, or features; the model's usual one when empty
  ModelConfig model;
  FactoriseConfig factorise;
  void fields(Fields& f);
};

struct CompressSettings {
  std::string device;
  std::string precision;
  bool deterministic = false;
  std::int64_t threads = 0;  // as threads.compute
  std::optional<Shape> input;  // of one sample, where the file says it
  ModelConfig model;  // without weights
  StageConfig stage;  // whose passes rewrite it
  ReportConfig report;
  std::string block;  // path of the stage in the file: "stages[1]"; "" in the smaller file
  Marks marks;

  // The path of a key of one of the stage's passes: "stages[1].factorise.ranks".
  std::string path_of(const std::string& key) const { return block.empty() ? key : block + "." + key; }
};

// A file with `stages` is read as an experiment. Its data is not looked at: the shape of a sample follows from `data` alone.
// Throws ConfigError with every problem, each as file:line:col: path: message.
CompressSettings load_compress_settings(const std::string& path, std::span<const std::string> overrides);

}  // namespace tessera
