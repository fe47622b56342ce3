// Engines of cuDNN's graph interface that run one convolution.
#pragma once

#include <cudnn.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "core/conv2d_geometry.h"
#include "core/cuda/libraries/dnn_handle.h"
#include "core/dtype.h"

namespace tessera::cuda {

using BackendHandle = UniqueHandle<cudnnBackendDescriptor_t, cudnnBackendDestroyDescriptor>;

// One descriptor of the graph interface, filled attribute by attribute.
class DnnBackend {
 public:
  DnnBackend() = default;
  explicit DnnBackend(cudnnBackendDescriptorType_t type);

  template <class T>
  DnnBackend& set(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, const std::vector<T>& values) {
    check(cudnnBackendSetAttribute(get(), name, type, static_cast<std::int64_t>(values.size()), values.data()), "conv2d");
    return *this;
  }
  DnnBackend& set(cudnnBackendAttributeName_t name, const DnnBackend& other);
  bool finalize();  // false: cuDNN cannot do this
  cudnnBackendDescriptor_t get() const noexcept { return handle_.get(); }

 private:
  BackendHandle handle_;
};

enum class ImageLayout { channels_last, channels_first };

// How many engines to take of each of cuDNN's lists, which are best first: its heuristics A and B, and its fallback.
struct DnnLists {
  std::size_t a = 0, b = 0, fallback = 0;
};

struct DnnRequest {
  Conv2dPass pass;
  Conv2dGeometry geometry;
  DType images;
  DType weights;  // those of a forward, or the gradient of backward_weight
  ImageLayout layout = ImageLayout::channels_last;  // of images and weights
  bool tf32 = false;  // f32 operands may be rounded to tf32; without it no engine is taken that does so
  // Only engines that give equal bytes in every run and add up in f32, without transforms that lose digits: FFT, Winograd of half
  // types or of large tiles.
  bool exact = true;
  std::int64_t workspace = 0;  // bytes, at most
  DnnLists lists;
  std::string only = {};  // make none but the engine of this name; empty: any
};

struct DnnEngine {
  std::string offer;  // "choice A 3": its place in the list that named it first
  std::int64_t index = -1;
  std::string name;  // "engine 62 k2=7 k5=1", with the knobs that it sets: the same in every run
  DnnBackend config;  // the plan reads it
  DnnBackend plan;
  std::int64_t workspace = 0;  // bytes
};

// Those that cuDNN has a plan for, each once. Some are compiled when they are asked for. Empty where it has none.
std::vector<DnnEngine> dnn_engines(cudnnHandle_t handle, const DnnRequest& request);

// What a plan runs on: x, weight and y of the forward pass, or what stands for them in a backward one, and the workspace.
DnnBackend variant_pack(const std::array<void*, 3>& tensors, void* workspace);

}  // namespace tessera::cuda
