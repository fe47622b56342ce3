// Convolutions by cuDNN: what it offers for one pass over one geometry.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/conv2d_geometry.h"
#include "core/tensor.h"

namespace tessera::cuda {

struct DnnDescriptors;
struct DnnEngine;

// What follows a forward convolution.
struct ConvEpilogue {
  bool bias = false;
  bool relu = false;
  bool residual = false;
};

struct ConvOperands {
  const Tensor& a;  // x; of backward_input: grad_y
  const Tensor& b;  // weight; of backward_weight: grad_y
  const Tensor& result;
  Tensor bias = {};  // those of the epilogue; a bias beside half images is of their dtype or f32, and rounded where it is fused
  Tensor residual = {};
};

// One deterministic algorithm with its arithmetic, or one engine of the graph interface. Serves one thread at a time.
class DnnConvolution {
 public:
  struct Algorithm {
    int number;
    int math;
    std::size_t workspace;
    bool fused;  // the library does the epilogue as well; otherwise it follows in one pass over y
  };

  DnnConvolution(std::shared_ptr<const DnnDescriptors> descriptors, const Algorithm& algorithm);
  DnnConvolution(std::shared_ptr<const DnnDescriptors> descriptors, std::shared_ptr<const DnnEngine> engine);

  // "cudnn implicit_precomp_gemm tensor fused", "cudnn weight1 tensor f32", "cudnn 91900 engine 62 k2=7": the same in every run.
  // An engine's number and knobs mean something in one version of the library only.
  const std::string& name() const { return name_; }
  // "engine 62 k2=7" of such a name; empty where it names no engine of this version.
  static std::string engine_in(std::string_view name);

  // Whether a weight's gradient is rounded to half on its way to f32.
  bool rounds_gradient() const;

  // Queues it. a, b and y are of the dtype asked for, the weight's gradient of that or f32. False where the library turns out not
  // to have the kernel; nothing is written then. Throws DeviceError where it fails.
  bool try_run(const ConvOperands& operands) const;

 private:
  int run_fused(const ConvOperands& operands, void* workspace) const;  // cudnnStatus_t
  int run_plain(const ConvOperands& operands, void* workspace) const;
  int run_engine(const ConvOperands& operands, void* workspace) const;

  std::shared_ptr<const DnnDescriptors> descriptors_;
  Algorithm algorithm_ = {};
  std::shared_ptr<const DnnEngine> engine_;
  std::string name_;
};

// Engines to make, each of which takes some 50 ms: those that a clock chooses among, or the one that a DnnConvolution's name has.
struct WantedEngines {
  bool all = false;
  std::string only = {};
};

// Algorithms, best first by the library's heuristics, and after them the wanted engines, which do not fuse the epilogue. For
// convolutions in groups one engine comes first in any case. Empty where the library has none. f32 is multiplied in f32 unless
// `tf32`; half types are added up in f32. For the weight gradient of half types algorithms that write it in f32 come first, then
// those that round it to the half type, so that it has to be widened; trying shows whether the library has the former.
std::vector<std::shared_ptr<DnnConvolution>> dnn_convolutions(Conv2dPass pass, const Conv2dGeometry& geometry, DType dtype,
                                                              const ConvEpilogue& epilogue, bool tf32, Device device,
                                                              const WantedEngines& wanted);

}  // namespace tessera::cuda
