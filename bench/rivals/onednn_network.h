// A network for inference as a user of oneDNN alone would write it: one primitive for each convolution, with bias, residual and
// rectifier inside (post-ops), weights laid out before any timing, images handed on in the layout that they are in.
#pragma once

#include <dnnl.hpp>

#include <memory>
#include <optional>
#include <unordered_map>
#include <vector>

#include "core/conv2d_geometry.h"
#include "core/tensor.h"

namespace tessera::bench {

class OnednnNetwork {
 public:
  // chosen: what oneDNN asks for between two convolutions. blocks: channels in blocks of a register's width, in which it has more
  // kernels, Winograd among them.
  enum class Layout { chosen, blocks };
  using Image = std::size_t;

  // x [n, h, w, c] is the input, which every run reads anew.
  OnednnNetwork(const Tensor& x, Layout layout);

  struct Tail {
    Tensor bias = {};  // [out], or undefined
    std::optional<Image> residual = {};  // added, and then gone: the result takes its place
    bool relu = false;
  };
  // weight [out, kh, kw, in]. Direct or Winograd, whichever a few runs on this input find the faster.
  Image convolve(Image x, const Tensor& weight, const Tail& tail, const Conv2dOptions& options = {});
  Image max_pool(Image x, Extent kernel, Extent stride, Extent padding);
  Image average(Image x);  // [n, c, 1, 1]
  Image product(Image x, const Tensor& weight, const Tensor& bias);  // of [n, c, 1, 1], weight [out, c]

  void run();
  // [n, h, w, c], or [n, c] of what product() gave.
  Tensor values(Image image) const;

 private:
  struct Step {
    dnnl::primitive primitive;
    std::unordered_map<int, dnnl::memory> arguments;
  };
  // Reorders that the primitive needs, and the primitive.
  struct Convolution {
    std::vector<Step> steps;
    dnnl::memory y;
  };
  std::optional<Convolution> describe(dnnl::algorithm algorithm, const dnnl::memory& x, const Tensor& weight, const Tail& tail,
                                      const Conv2dOptions& options);
  double milliseconds(Convolution& convolution, const Tail& tail);
  void add(std::vector<Step> steps);  // and runs them once: what follows is timed on real values
  void execute(std::vector<Step>& steps);
  Image keep(const dnnl::memory& image);

  Layout layout_;
  dnnl::stream stream_;
  std::vector<dnnl::memory> images_;
  std::vector<Step> steps_;
  std::vector<Tensor> kept_;  // whose memory the steps read
};

}  // namespace tessera::bench
