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

namespace tessera::capi {

inline constexpr const char* kOutputName = "scores";

struct LoadOptions {
  std::string at = {};  // of a run folder, as for `tessera eval --at`
  std::string precision = {};  // "": the run's, of a file f32
};

// "float32", "int64", "uint8": as programs in C and Python call what they hand over.
std::string name_in_c(DType dtype);

// A part of a sample that the network reads.
struct Input {
  Field field;
  bool optional = false;
  std::optional<Normalization> pixels = {};  // bytes are taken, too, and normalised by it
  bool any_length = false;  // a sequence, whose length may be another one
};

struct TrainedNetwork {
  std::unique_ptr<Module> model;  // on the CPU, with the weights that the run itself evaluated
  std::vector<Input> inputs = {};  // the first one is what the network reads
  std::string precision = "f32";
  DecisionMap decisions = {};
  Value origin = Value::map();
  Value data = Value::map();  // keys_of_export() of the run
  std::optional<std::string> task = {};
  std::vector<std::string> passed_over = {};  // of each newer checkpoint that is damaged

  DType compute() const;
  // Of a batch of the first input.
  Shape output_shape(const Shape& input) const { return model->output_shape(input); }
};

// Of a run folder, of the folder of one checkpoint, or of a file that holds a network (train/run/network_file.h). Throws
// ConfigError on a path that is none of them, on `at` beside the latter two, where there is no such checkpoint, and on a
// precision that the processor cannot compute in; IoError on what is damaged.
TrainedNetwork load_trained(Vfs& vfs, const std::string& path, const LoadOptions& options);

// What tessera_describe() gives.
Value description_of(const TrainedNetwork& network);

}  // namespace tessera::capi
