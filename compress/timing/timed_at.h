// How the place of a timing is told. Keys of recorded timings end in it, so that what one device, batch or phase decided is never
// taken for another's.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "core/device/device.h"
#include "core/dtype.h"

namespace tessera {

// inference: a forward that records nothing. training: a forward in training mode and the backward sweep, gradients of the input
// included.
enum class Phase { inference, training };
std::string_view name_of(Phase phase);

// What computes: "2 threads" of the CPU, whatever their number; a GPU's name.
std::string machine_text(Device device, std::int64_t threads);

struct TimedAt {
  std::int64_t batch = 1;
  Phase phase = Phase::inference;
  std::string machine = {};  // of machine_text()
  bool folded = false;
  DType compute = DType::f32;
  bool recompute = false;  // in training
  bool tf32 = false;  // products of f32 round their operands (core/device/precision.h)
};

// "f32", "tf32", "bf16", ...: the precision of TimedAt.
std::string precision_text(DType compute, bool tf32);

// "batch 32, inference, 2 threads", or "folded inference, NVIDIA H200", with ", bf16" unless it is f32; always so.
std::string where_timed(const TimedAt& at);

}  // namespace tessera
