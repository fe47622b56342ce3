// A sequence of direct oneDNN calls on our tensors: reorders in, one primitive, reorders out. Memory is set up once, before any
// timing. Included by the rivals' sources only; it shares nothing with core/cpu, so that a slip there cannot slow both sides.
#pragma once

#include <dnnl.hpp>

#include <unordered_map>
#include <vector>

#include "core/tensor.h"

namespace tessera::bench {

const dnnl::engine& rival_engine();

class OnednnCalls {
 public:
  // Without `reorders` the primitive finds its operands in its own layouts and leaves its result there.
  explicit OnednnCalls(bool reorders) : reorders_(reorders), stream_(rival_engine()) {}

  void read(int argument, const Tensor& data, const dnnl::memory::desc& ours, const dnnl::memory::desc& theirs);
  // An operand that keeps its values: reordered here, whatever `reorders`.
  void read_constant(int argument, const Tensor& data, const dnnl::memory::desc& ours, const dnnl::memory::desc& theirs);
  void write(int argument, const Tensor& data, const dnnl::memory::desc& ours, const dnnl::memory::desc& theirs);
  void primitive(const dnnl::primitive& primitive, const dnnl::memory::desc& scratchpad);
  void run();

 private:
  struct Step {
    dnnl::primitive primitive;
    std::unordered_map<int, dnnl::memory> arguments;
  };

  bool reorders_;
  dnnl::stream stream_;
  std::vector<Step> before_, after_;
  Step main_;
};

// Scratchpads belong to the sequence; the library's own would be allocated at every call.
dnnl::primitive_attr with_own_scratchpad();

// f32 with explicit strides, and with the layout left to the primitive.
dnnl::memory::desc strided(const dnnl::memory::dims& sizes, const dnnl::memory::dims& strides);
dnnl::memory::desc any_layout(const dnnl::memory::dims& sizes);

}  // namespace tessera::bench
