// The cuDNN functions that tessera calls, as loops over the GPU's memory: 2-d convolutions of NHWC images and their gradients.
// For each pass two deterministic algorithms are offered, and one that is not.
#include <cstring>
#include <mutex>

#include "tests/simulated_gpu/dnn.h"
#include "tests/simulated_gpu/numbers.h"
#include "tests/simulated_gpu/stream.h"

namespace {

using namespace tessera::simulated_gpu;

Number number(cudnnDataType_t type) {
  switch (type) {
    case CUDNN_DATA_FLOAT: return Number::f32;
    case CUDNN_DATA_DOUBLE: return Number::f64;
    case CUDNN_DATA_BFLOAT16: return Number::bf16;
    case CUDNN_DATA_HALF: return Number::f16;
    default: fail("cuDNN: an element type that tessera has not");
  }
}

std::size_t size(int value) { return static_cast<std::size_t>(value); }
std::size_t numel(const cudnnTensorStruct& x) { return size(x.n) * size(x.h) * size(x.w) * size(x.c); }
std::size_t numel(const cudnnFilterStruct& x) { return size(x.out) * size(x.h) * size(x.w) * size(x.in); }

struct Convolution {
  cudnnTensorStruct x, y;
  cudnnFilterStruct weight;
  cudnnConvolutionStruct how;

  cudnnStatus_t check() const {
    if (x.format != CUDNN_TENSOR_NHWC || y.format != CUDNN_TENSOR_NHWC || weight.format != CUDNN_TENSOR_NHWC) {
      return CUDNN_STATUS_NOT_SUPPORTED;
    }
    if (x.type != y.type || weight.type != x.type) return CUDNN_STATUS_NOT_SUPPORTED;
    const auto out = [](int in, int pad, int kernel, int stride, int dilation) {
      return (in + 2 * pad - dilation * (kernel - 1) - 1) / stride + 1;
    };
    const bool fits = x.n == y.n && x.c == weight.in * how.groups && y.c == weight.out && weight.out % how.groups == 0 &&
                      y.h == out(x.h, how.pad_h, weight.h, how.stride_h, how.dilation_h) &&
                      y.w == out(x.w, how.pad_w, weight.w, how.stride_w, how.dilation_w);
    return fits ? CUDNN_STATUS_SUCCESS : CUDNN_STATUS_BAD_PARAM;
  }

  // Calls term(index in x, in weight, in y) for each product of the convolution.
  template <class Term>
  void for_each(const Term& term) const {
    const int group_out = weight.out / how.groups;
    for (int n = 0; n < y.n; ++n) {
      for (int oy = 0; oy < y.h; ++oy) {
        for (int ox = 0; ox < y.w; ++ox) {
          for (int ky = 0; ky < weight.h; ++ky) {
            for (int kx = 0; kx < weight.w; ++kx) {
              const int iy = oy * how.stride_h - how.pad_h + ky * how.dilation_h;
              const int ix = ox * how.stride_w - how.pad_w + kx * how.dilation_w;
              if (iy < 0 || iy >= x.h || ix < 0 || ix >= x.w) continue;
              const std::size_t in_pixel = (size(n) * size(x.h) + size(iy)) * size(x.w) + size(ix);
              const std::size_t out_pixel = (size(n) * size(y.h) + size(oy)) * size(y.w) + size(ox);
              for (int o = 0; o < weight.out; ++o) {
                const std::size_t first = in_pixel * size(x.c) + size(o / group_out * weight.in);
                const std::size_t filter = ((size(o) * size(weight.h) + size(ky)) * size(weight.w) + size(kx)) * size(weight.in);
                for (int c = 0; c < weight.in; ++c) term(first + size(c), filter + size(c), out_pixel * size(y.c) + size(o));
              }
            }
          }
        }
      }
    }
  }
};

// Sums in double that are rounded once, on write.
class Sums {
 public:
  explicit Sums(std::size_t count) : sums_(count) {}
  double& operator[](std::size_t i) { return sums_[i]; }
  void write(cudnnDataType_t type, void* to) const {
    for (std::size_t i = 0; i < sums_.size(); ++i) store(number(type), to, i, sums_[i]);
  }

 private:
  std::vector<double> sums_;
};

constexpr std::size_t kWorkspaces[] = {0, 8192, 256};

template <class Performance, class Algorithm>
cudnnStatus_t propose(const Convolution& c, int most, int* count, Performance* results) {
  *count = 0;
  if (const cudnnStatus_t status = c.check(); status != CUDNN_STATUS_SUCCESS) return status;
  for (int i = 0; i < 3 && *count < most; ++i) {
    Performance& result = results[(*count)++];
    result = {};
    result.algo = static_cast<Algorithm>(i);
    result.status = CUDNN_STATUS_SUCCESS;
    result.memory = kWorkspaces[i];
    result.determinism = i == 2 ? CUDNN_NON_DETERMINISTIC : CUDNN_DETERMINISTIC;
    result.mathType = c.how.math;
  }
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t measure(const Convolution& c, int algorithm, std::size_t* bytes) {
  *bytes = algorithm < 3 ? kWorkspaces[algorithm] : 0;
  return c.check();
}

template <class Work>
cudnnStatus_t run(cudnnHandle_t handle, const Convolution& c, int algorithm, void* workspace, std::size_t bytes,
                  const void* alpha, const void* beta, const Work& work) {
  const std::lock_guard lock(gpu_mutex());
  if (const cudnnStatus_t status = c.check(); status != CUDNN_STATUS_SUCCESS) return status;
  if (algorithm > 1 || bytes < kWorkspaces[algorithm]) return CUDNN_STATUS_BAD_PARAM;
  if (*static_cast<const float*>(alpha) != 1 || *static_cast<const float*>(beta) != 0) return CUDNN_STATUS_NOT_SUPPORTED;
  put(handle->stream, [=] {
    std::memset(workspace, 0xab, bytes);
    work();
  });
  return CUDNN_STATUS_SUCCESS;
}

// The factors of c's products. Every math mode but FMA may round f32 to tf32.
template <class Descriptor>
std::vector<double> factors(const Convolution& c, const Descriptor& desc, const void* data) {
  const bool rounded = desc.type == CUDNN_DATA_FLOAT && c.how.math != CUDNN_FMA_MATH;
  return load_all(rounded ? Number::tf32 : number(desc.type), data, numel(desc));
}

Sums forward(const Convolution& c, const void* x, const void* weight) {
  Sums sums(numel(c.y));
  const std::vector<double> left = factors(c, c.x, x), right = factors(c, c.weight, weight);
  c.for_each([&](std::size_t in, std::size_t filter, std::size_t out) { sums[out] += left[in] * right[filter]; });
  return sums;
}

}  // namespace

extern "C" {

cudnnStatus_t cudnnGetConvolutionForwardAlgorithm_v7(cudnnHandle_t, const cudnnTensorDescriptor_t x,
                                                     const cudnnFilterDescriptor_t weight, const cudnnConvolutionDescriptor_t how,
                                                     const cudnnTensorDescriptor_t y, const int most, int* count,
                                                     cudnnConvolutionFwdAlgoPerf_t* results) {
  return propose<cudnnConvolutionFwdAlgoPerf_t, cudnnConvolutionFwdAlgo_t>({*x, *y, *weight, *how}, most, count, results);
}
cudnnStatus_t cudnnGetConvolutionBackwardDataAlgorithm_v7(cudnnHandle_t, const cudnnFilterDescriptor_t weight,
                                                          const cudnnTensorDescriptor_t y, const cudnnConvolutionDescriptor_t how,
                                                          const cudnnTensorDescriptor_t x, const int most, int* count,
                                                          cudnnConvolutionBwdDataAlgoPerf_t* results) {
  return propose<cudnnConvolutionBwdDataAlgoPerf_t, cudnnConvolutionBwdDataAlgo_t>({*x, *y, *weight, *how}, most, count, results);
}
cudnnStatus_t cudnnGetConvolutionBackwardFilterAlgorithm_v7(cudnnHandle_t, const cudnnTensorDescriptor_t x,
                                                            const cudnnTensorDescriptor_t y,
                                                            const cudnnConvolutionDescriptor_t how,
                                                            const cudnnFilterDescriptor_t weight, const int most, int* count,
                                                            cudnnConvolutionBwdFilterAlgoPerf_t* results) {
  return propose<cudnnConvolutionBwdFilterAlgoPerf_t, cudnnConvolutionBwdFilterAlgo_t>({*x, *y, *weight, *how}, most, count,
                                                                                       results);
}
cudnnStatus_t cudnnGetConvolutionForwardWorkspaceSize(cudnnHandle_t, const cudnnTensorDescriptor_t x,
                                                      const cudnnFilterDescriptor_t weight,
                                                      const cudnnConvolutionDescriptor_t how, const cudnnTensorDescriptor_t y,
                                                      cudnnConvolutionFwdAlgo_t algorithm, std::size_t* bytes) {
  return measure({*x, *y, *weight, *how}, algorithm, bytes);
}
cudnnStatus_t cudnnGetConvolutionBackwardDataWorkspaceSize(cudnnHandle_t, const cudnnFilterDescriptor_t weight,
                                                           const cudnnTensorDescriptor_t y,
                                                           const cudnnConvolutionDescriptor_t how,
                                                           const cudnnTensorDescriptor_t x,
                                                           cudnnConvolutionBwdDataAlgo_t algorithm, std::size_t* bytes) {
  return measure({*x, *y, *weight, *how}, algorithm, bytes);
}
cudnnStatus_t cudnnGetConvolutionBackwardFilterWorkspaceSize(cudnnHandle_t, const cudnnTensorDescriptor_t x,
                                                             const cudnnTensorDescriptor_t y,
                                                             const cudnnConvolutionDescriptor_t how,
                                                             const cudnnFilterDescriptor_t weight,
                                                             cudnnConvolutionBwdFilterAlgo_t algorithm, std::size_t* bytes) {
  return measure({*x, *y, *weight, *how}, algorithm, bytes);
}

cudnnStatus_t cudnnConvolutionForward(cudnnHandle_t handle, const void* alpha, const cudnnTensorDescriptor_t x_desc,
                                      const void* x, const cudnnFilterDescriptor_t weight_desc, const void* weight,
                                      const cudnnConvolutionDescriptor_t how, cudnnConvolutionFwdAlgo_t algorithm,
                                      void* workspace, std::size_t bytes, const void* beta, const cudnnTensorDescriptor_t y_desc,
                                      void* y) {
  const Convolution c{*x_desc, *y_desc, *weight_desc, *how};
  return run(handle, c, algorithm, workspace, bytes, alpha, beta, [=] { forward(c, x, weight).write(c.y.type, y); });
}

// y = activation(convolution + alpha2 z + bias). Only the second algorithm supports the identity as activation.
cudnnStatus_t cudnnConvolutionBiasActivationForward(
    cudnnHandle_t handle, const void* alpha1, const cudnnTensorDescriptor_t x_desc, const void* x,
    const cudnnFilterDescriptor_t weight_desc, const void* weight, const cudnnConvolutionDescriptor_t how,
    cudnnConvolutionFwdAlgo_t algorithm, void* workspace, std::size_t bytes, const void* alpha2, const cudnnTensorDescriptor_t,
    const void* z, const cudnnTensorDescriptor_t bias_desc, const void* bias, const cudnnActivationDescriptor_t activation,
    const cudnnTensorDescriptor_t y_desc, void* y) {
  const Convolution c{*x_desc, *y_desc, *weight_desc, *how};
  const bool relu = activation->mode == CUDNN_ACTIVATION_RELU;
  if (!relu && algorithm != CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM) return CUDNN_STATUS_NOT_SUPPORTED;
  const double share = static_cast<double>(*static_cast<const float*>(alpha2));
  const cudnnDataType_t bias_type = bias_desc->type;
  const float none = 0;
  return run(handle, c, algorithm, workspace, bytes, alpha1, &none, [=] {
    Sums sums = forward(c, x, weight);
    for (std::size_t i = 0; i < numel(c.y); ++i) {
      sums[i] += load(number(bias_type), bias, i % size(c.y.c));
      if (share != 0) sums[i] += share * load(number(c.y.type), z, i);
      if (relu && sums[i] < 0) sums[i] = 0;
    }
    sums.write(c.y.type, y);
  });
}

cudnnStatus_t cudnnConvolutionBackwardData(cudnnHandle_t handle, const void* alpha, const cudnnFilterDescriptor_t weight_desc,
                                           const void* weight, const cudnnTensorDescriptor_t y_desc, const void* y,
                                           const cudnnConvolutionDescriptor_t how, cudnnConvolutionBwdDataAlgo_t algorithm,
                                           void* workspace, std::size_t bytes, const void* beta,
                                           const cudnnTensorDescriptor_t x_desc, void* x) {
  const Convolution c{*x_desc, *y_desc, *weight_desc, *how};
  return run(handle, c, algorithm, workspace, bytes, alpha, beta, [=] {
    Sums sums(numel(c.x));
    const std::vector<double> left = factors(c, c.y, y), right = factors(c, c.weight, weight);
    c.for_each([&](std::size_t in, std::size_t filter, std::size_t out) { sums[in] += left[out] * right[filter]; });
    sums.write(c.x.type, x);
  });
}

cudnnStatus_t cudnnConvolutionBackwardFilter(cudnnHandle_t handle, const void* alpha, const cudnnTensorDescriptor_t x_desc,
                                             const void* x, const cudnnTensorDescriptor_t y_desc, const void* y,
                                             const cudnnConvolutionDescriptor_t how, cudnnConvolutionBwdFilterAlgo_t algorithm,
                                             void* workspace, std::size_t bytes, const void* beta,
                                             const cudnnFilterDescriptor_t weight_desc, void* weight) {
  const Convolution c{*x_desc, *y_desc, *weight_desc, *how};
  return run(handle, c, algorithm, workspace, bytes, alpha, beta, [=] {
    Sums sums(numel(c.weight));
    const std::vector<double> left = factors(c, c.x, x), right = factors(c, c.y, y);
    c.for_each([&](std::size_t in, std::size_t filter, std::size_t out) { sums[filter] += left[in] * right[out]; });
    sums.write(c.weight.type, weight);
  });
}

}  // extern "C"
