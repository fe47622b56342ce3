// oneDNN 2.x on our tensors: primitives are built once per (shape, options, thread count) and kept with their memory objects;
// a call binds pointers and executes. Included by onednn.cpp and by *_cpu.cpp only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include <dnnl.hpp>

#include "core/device/plan_cache.h"
#include "core/tensor.h"

namespace tessera::cpu::onednn {

// One engine for the process, one stream per thread.
const dnnl::engine& engine();
dnnl::stream& stream();

// Scratchpads come from our caching allocator: oneDNN's own would fault fresh pages in at every call.
dnnl::primitive_attr attributes();
// The same with max(y, 0) done to the result; a NaN may become 0.
dnnl::primitive_attr relu_attributes();

// With explicit strides, in elements; f32 or bf16.
dnnl::memory::desc strided(const dnnl::memory::dims& sizes, const dnnl::memory::dims& strides, DType dtype = DType::f32);
// Sizes without a layout: the primitive chooses.
dnnl::memory::desc any_layout(const dnnl::memory::dims& sizes, DType dtype = DType::f32);

// One argument of a primitive. Where `theirs` differs from `ours`, in layout or dtype, the data is reordered before or after
// execution.
struct Operand {
  int argument;  // DNNL_ARG_*
  dnnl::memory::desc ours;
  dnnl::memory::desc theirs;
  bool output = false;
};

class Primitive {
 public:
  Primitive(const dnnl::primitive& primitive, const dnnl::memory::desc& scratchpad, const std::vector<Operand>& operands);

  // data[i] is the tensor of operands[i]. Not for two threads at once: the memory objects are rebound here.
  void execute(std::span<void* const> data) { execute(data, std::nullopt); }
  void execute(std::initializer_list<void*> data) { execute(std::span(data.begin(), data.size())); }
  // The same with operand `ready`, an input, given as reordered() made it.
  void execute(std::span<void* const> data, std::optional<std::size_t> ready) { execute_in(buffers(ready), data, ready); }

  // What a call needs besides its operands, and a call that finds it: for a caller whose threads are not to allocate.
  std::vector<Tensor> buffers(std::optional<std::size_t> ready = {}) const;
  void execute_in(const std::vector<Tensor>& buffers, std::span<void* const> data, std::optional<std::size_t> ready = {});

  // An input as the primitive wants it, for a caller who keeps it across calls; undefined where that is how it is.
  Tensor reordered(std::size_t operand, void* data);

 private:
  struct Bound {
    int argument;
    bool output;
    dnnl::memory ours;
    dnnl::memory theirs;  // the same object as `ours` when no reorder is needed
    dnnl::primitive reorder;  // empty when no reorder is needed
  };

  dnnl::primitive primitive_;
  std::vector<Bound> bound_;
  dnnl::memory scratchpad_;
  std::unordered_map<int, dnnl::memory> arguments_;
};

// How many primitives this thread has built: stays constant while caches hit.
std::size_t primitives_built() noexcept;

// Threads a primitive executed now would run with: 1 inside a parallel region.
int threads_now() noexcept;

// Throws for a call of oneDNN that failed: OutOfMemoryError with the bytes in use where it found no room for buffers of its own,
// InternalError otherwise. `what` names the call.
[[noreturn]] void fail(dnnl_status_t status, const std::string& what);

// Runs `build` and returns its result, or nothing when oneDNN has no implementation for the description.
std::unique_ptr<Primitive> build_or_null(const auto& build) {
  try {
    return build();
  } catch (const dnnl::error& error) {
    if (error.status == dnnl_unimplemented) return nullptr;
    fail(error.status, error.message);
  }
}

// The thread count joins the key because oneDNN splits the work when a primitive is created.
template <class Plan>
class PlanCache {
 public:
  template <class Build>
  std::shared_ptr<Plan> get(std::vector<std::int64_t> key, const Build& build) {
    key.push_back(threads_now());
    return cache_.get(std::move(key), build);
  }

 private:
  tessera::PlanCache<Plan> cache_;
};

}  // namespace tessera::cpu::onednn
