// Names in a profile of the GPU.
#pragma once

namespace tessera::cuda {

// What is queued while it lives shows below `name` (an op's) in NVIDIA's profilers.
class Range {
 public:
  explicit Range(const char* name);
  ~Range();
  Range(const Range&) = delete;
  Range& operator=(const Range&) = delete;
};

}  // namespace tessera::cuda
