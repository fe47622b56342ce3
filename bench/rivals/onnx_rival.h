// ONNX Runtime answering one batch with one model, in a child process.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "core/config/value.h"
#include "core/io/child_process.h"
#include "core/shape.h"

namespace tessera::bench {

struct OnnxProgram {
  std::string python;
  std::string script;
  int threads = 2;
};

// What a session is asked to answer: a model's file, and the batch as f32 in a file, element by element.
struct OnnxQuestion {
  std::filesystem::path model;
  std::filesystem::path batch;
  Shape shape;  // of the batch
};

struct OnnxWay {
  int threads;
  bool spinning;  // what its threads do while they wait for work; otherwise they sleep
  bool operator==(const OnnxWay&) const = default;
};
std::string to_string(const OnnxWay& way);  // "2 threads that spin"
// All threads, spinning and sleeping, and one alone, which small work may be done faster by.
std::vector<OnnxWay> onnx_ways(int threads);

class OnnxRival {
 public:
  // Throws ConfigError when there is no such interpreter or it cannot import ONNX Runtime.
  OnnxRival(const OnnxProgram& program, const OnnxQuestion& question, const OnnxWay& way);

  const OnnxWay& way() const noexcept { return way_; }
  const Value& environment() const noexcept { return environment_; }  // versions
  std::vector<double> values();  // what it answers, row by row
  std::vector<double> run(std::int64_t count);  // milliseconds of each answer

 private:
  Value ask(const std::string& line);

  OnnxWay way_;
  ChildProcess child_;
  Value environment_;
};

}  // namespace tessera::bench
