// From the name in an experiment file to the device that a run computes on.
#pragma once

#include <map>
#include <string>

#include "core/device/device.h"

namespace tessera {

// "auto" is the CPU until the tests that need a GPU have passed on one (docs/gpu-status.md).
inline constexpr bool kAutoTakesGpu = false;

// GPUs that a process sees. For people also why there are none, and why this build cannot compute on each that it cannot.
struct Gpus {
  int count = 0;
  std::string why_none;
  std::map<int, std::string> unusable;  // by index
  bool taken_by_auto = kAutoTakesGpu;
};
Gpus gpus_of_process();

// "auto" is the CPU or, where it takes GPUs, the first one that can be used; other names are themselves. Throws ConfigError on
// unknown names, and says nothing of whether the device is there: what was stored on one machine must be readable on another.
Device named_device(const std::string& name);
Device named_device(const std::string& name, const Gpus& gpus);

// The same, for a caller that is about to compute there: throws ConfigError with the reason when the process cannot use the
// device.
Device resolve_device(const std::string& name);
Device resolve_device(const std::string& name, const Gpus& gpus);

// What "auto" came to, with the reason: "device: auto is the CPU: no CUDA driver is installed". "" for other names.
std::string choice_of_device(const std::string& name);
std::string choice_of_device(const std::string& name, const Gpus& gpus);

}  // namespace tessera
