// What `tessera bench` times: the network of a run, of an experiment file, or a named one, with what its compressed layers
// replace.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "compress/timing/compare.h"
#include "core/io/vfs.h"
#include "core/nn/module.h"

namespace tessera {

struct BenchOptions {
  std::string target;  // a name of model_names(), a run folder or an experiment file
  std::vector<std::string> overrides = {};  // key=value: of a file any key, of a model those of its block, of a run few
  std::string at = {};  // of a run: a stage's end, a step, or "best"; "" = the newest checkpoint
  std::string input = {};  // "3x224x224", channels first, or "784"; "" = the run's, or the one usual for the model
  std::string device = {};  // "cpu", "cuda:1"; "" = the experiment's or run's, "auto" of a model by name
  std::string precision = {};  // "f32", "bf16"; "" = the experiment's or run's, f32 of a model by name
  std::string batch = {};  // "1,32"; "" = report.latency.batch
  std::string threads = {};  // "1,2"; "" = threads.compute; of the CPU only
  Phase phase = Phase::inference;
  std::int64_t rounds = 60;
};

struct BenchNetwork {
  std::string target;
  std::string state;  // which weights: "stage finetune, step 40", "random weights"
  std::unique_ptr<Module> model;
  std::vector<Replaced> dense;  // empty where no layer is compressed
  Shape input;  // of one sample, [1, ...]
  Device device = {};  // where model and dense layers are
  DType compute = DType::f32;  // what activations are in
  bool tf32 = false;  // products of f32 round their operands
  std::vector<std::int64_t> batches;
  std::vector<std::int64_t> threads;
  std::string next;  // the command to try next
};

// Whole numbers from 1 to `most` with commas between; throws ConfigError naming the option.
std::vector<std::int64_t> parse_counts(std::string_view option, std::string_view text, std::int64_t most);
// "3x224x224" is [1, 224, 224, 3], "784" is [1, 784]; throws ConfigError.
Shape parse_input(std::string_view text);

// Layers of an experiment file are factored as its stages say, with ranks chosen from the initial weights and none put back.
// Throws ConfigError on a target that is none of the three, naming the nearest models, and on options that do not fit it, such as
// a phase in which it does not run.
BenchNetwork load_bench_network(Vfs& vfs, const BenchOptions& options);

}  // namespace tessera
