// What `tessera compress` does: the layers of a trained network rewritten as a file says, timed against their dense originals,
// put back where the veto of a run would, and written with the rest of the network.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "compress/layer_report.h"
#include "core/config/fields.h"
#include "core/io/vfs.h"
#include "core/shape.h"

namespace tessera {

struct CompressOptions {
  std::string weights;  // what model.weights takes (train/run/import_weights.h)
  std::string config;  // train/run/compress_config.h
  std::vector<std::string> overrides = {};  // key=value of the file
  std::string input = {};  // as for bench; "" = the file's, or the one usual for the model
  std::string decisions = {};  // decisions.json to replay; "" = every layer is timed
  std::string record = {};  // decisions.json to write; "" = none
  std::string output = "compressed.safetensors";  // train/run/network_file.h
};

struct CompressReport {
  std::string weights;
  std::string config;
  std::string stage;  // of an experiment file; "" of a smaller one
  Shape input;  // of one sample
  std::string device;
  std::string precision;
  std::vector<PassReport> passes;
  std::string output;
  std::int64_t bytes = 0;  // of the file

  void fields(Fields& f);
};

// `before` is told what is about to be timed. Throws ConfigError when the output is there already, on faults of the file, on
// weights that do not fit the network, and on layers or ranks that it cannot have; nothing is written then.
CompressReport compress_network(Vfs& vfs, const CompressOptions& options, const std::function<void(const std::string&)>& before);

// For people: what was compressed, then a table per pass with a row per layer and one of the network.
std::string to_text(const CompressReport& report);

}  // namespace tessera
