// A trained network as a program runs it that knows nothing of its training.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/config/value.h"
#include "core/device/decisions.h"
#include "core/io/vfs.h"
#include "core/nn/module.h"
#include "train/data/batch.h"
#include "train/data/transforms.h"
#include "train/run/network_file.h"

namespace tessera::capi {

inline constexpr const char* kOutputName = "scores";

struct LoadOptions {
  std::string at = {};  // of a run folder, as for `tessera eval --at`
  std::string precision = {};  // "": that of its training, f32 where this is not known
};

// "float32", "int64", "uint8": as programs in C and Python call what they hand over.
std::string name_in_c(DType dtype);

// A part of a sample that the network reads.
struct Input {
  Field field;
  bool optional = false;
  std::optional<NormalizationTable> pixels = {};  // bytes are taken, too, and normalised by it
  bool any_length = false;  // a sequence, whose length may be another one
};

struct TrainedNetwork {
  std::unique_ptr<Module> model;  // on the CPU, with the weights that the run itself evaluated
  std::vector<Input> inputs = {};  // the first one is what the network reads
  NetworkUse use = {};  // its task is "" where none is known
  DecisionMap decisions = {};  // of its use
  Value origin = Value::map();
  std::vector<std::string> passed_over = {};  // of each newer checkpoint that is damaged

  DType compute() const;
  // `input` is the shape of a batch of the first input.
  Shape output_shape(const Shape& input) const { return model->output_shape(input); }
};

// Loads from a run folder, the folder of one checkpoint, or a file that holds a network (train/run/network_file.h). Throws
// ConfigError on a path that is none of them, on `at` beside the latter two, where there is no such checkpoint, and on a
// precision that the processor cannot compute in; IoError on what is damaged or cannot be looked at. Messages name the path.
TrainedNetwork load_trained(Vfs& vfs, const std::string& path, const LoadOptions& options);

// What tessera_describe() gives.
Value description_of(const TrainedNetwork& network);

}  // namespace tessera::capi
