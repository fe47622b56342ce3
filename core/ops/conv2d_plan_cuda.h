// How one pass of one convolution runs on a GPU. Included by conv2d_cuda.cpp, tests of the algorithms and benchmarks only.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "core/cuda/core_conv/core_conv.h"
#include "core/cuda/libraries/dnn_plan.h"
#include "core/conv2d_geometry.h"

namespace tessera::cuda {

struct Conv2dPlan {
  enum class Method { library, gemm, own, naive };
  Method method;
  std::string algorithm;  // gemm, own, naive, "own 14x8 pixels x 32 channels"; of cuDNN: DnnConvolution::name()
  std::shared_ptr<DnnConvolution> library = nullptr;
  std::optional<CoreConvPlan> own = std::nullopt;
  // Channels that cuDNN sees: those of half types up to a multiple of 8, with zeros behind ours, so that tensor cores take them.
  std::int64_t in = 0;
  std::int64_t out = 0;
};

// The only place that decides; `dtype` is that of the images. Candidates: for 1x1 over every pixel the matrix product; our own
// kernel where its model predicts it to be faster than the library; cuDNN's algorithms in the order of its heuristics, for
// convolutions in groups after an engine. Without a DecisionScope the first candidate runs. A DecisionScope that measures also
// times engines, and our own kernels where no lead is predicted. f64, and what nothing else takes, go through plain loops. `run`
// executes a plan on the caller's operands and says whether the library had the kernel; candidates are tried with it once.
std::shared_ptr<Conv2dPlan> choose_conv2d_plan(Conv2dPass pass, const Conv2dGeometry& geometry, DType dtype,
                                               const ConvEpilogue& epilogue, Device device,
                                               const std::function<bool(const Conv2dPlan&)>& run);

// While one that is `alone` lives, conv2d() on a GPU takes no core kernel of ours, under decisions of its own: the rival of a
// benchmark. The newest decides. Not for several threads at once.
class LibraryConvolutions {
 public:
  explicit LibraryConvolutions(bool alone) noexcept;
  ~LibraryConvolutions();
  LibraryConvolutions(const LibraryConvolutions&) = delete;
  LibraryConvolutions& operator=(const LibraryConvolutions&) = delete;

 private:
  bool outer_;
};
bool library_convolutions() noexcept;

// How often this thread ran `algorithm`, over all passes: shows that a forced choice was obeyed.
std::size_t conv2d_runs(const std::string& algorithm);

}  // namespace tessera::cuda
