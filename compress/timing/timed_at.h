// How the device, batch and phase of a timing are written. Keys of recorded timings end in it, so that what one device, batch or
// phase decided is never taken for another's.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/device/device.h"
#include "core/dtype.h"

namespace tessera {

// inference: a forward that records nothing; for a network that writes text, its prefill. training: a forward in training mode
// and the backward sweep, gradients of the input included. decode: a forward of one new position of each sequence, with keys and
// values of the positions in front of it in a cache.
enum class Phase { inference, training, decode };
std::string_view name_of(Phase phase);
std::vector<std::string_view> phase_names();  // of all
Phase phase_named(std::string_view name);  // throws ConfigError

struct TimedBatch {
  Phase phase = Phase::inference;
  std::int64_t batch = 1;
};

// What computes: "2 threads" of the CPU, whatever their number; a GPU's name.
std::string machine_text(Device device, std::int64_t threads);

struct TimedAt {
  std::int64_t batch = 1;
  Phase phase = Phase::inference;
  std::int64_t length = 0;  // in decode: of the sequences, the new position included
  std::string machine = {};  // of machine_text()
  bool folded = false;
  DType compute = DType::f32;
  bool recompute = false;  // in training
  bool tf32 = false;  // products of f32 round their operands (core/device/precision.h)
};

// "f32", "tf32", "bf16", ...: the precision of TimedAt.
std::string precision_text(DType compute, bool tf32);

// "batch 32, inference, 2 threads", or "folded inference, NVIDIA H200", or "decode at length 256", with ", bf16" unless it is
// f32; always so.
std::string where_timed(const TimedAt& at);

}  // namespace tessera
