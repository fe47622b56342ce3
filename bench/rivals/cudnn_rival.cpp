#include "bench/rivals/cudnn_rival.h"

#include <algorithm>
#include <memory>

#include "core/cuda/libraries/dnn_engines.h"
#include "core/cuda/runtime/context.h"
#include "core/support/error.h"

namespace tessera::bench {
namespace {

using cuda::check;
using cuda::DnnBackend;
using cuda::DnnEngine;
using cuda::ImageLayout;
using DnnHandle = cuda::UniqueHandle<cudnnHandle_t, cudnnDestroy>;

DnnHandle make_handle(Device device) {
  const cudaStream_t stream = cuda::stream_of(device);
  cudnnHandle_t made = nullptr;
  check(cudnnCreate(&made), "cudnnCreate");
  DnnHandle handle(made);
  check(cudnnSetStream(made, stream), "cudnnSetStream");
  return handle;
}

constexpr std::int64_t kMostWorkspace = std::int64_t{1} << 30;
constexpr std::size_t kMostOfAList = 10;  // best first; some are compiled on request, which takes seconds

Conv2dPass core_pass(ConvPass pass) {
  switch (pass) {
    case ConvPass::forward: return Conv2dPass::forward;
    case ConvPass::backward_input: return Conv2dPass::backward_input;
    default: return Conv2dPass::backward_weight;
  }
}

// What all plans of one layout share. The sides that run them keep it alive.
struct Shared {
  std::shared_ptr<const DnnHandle> handle;
  std::vector<ConvTensors> sets;  // in the layout; cuDNN's dimensions are those of permuted views
  Tensor workspace;
  std::vector<DnnBackend> packs;  // one per set
};

// A tensor with the same numbers and channels first.
Tensor channels_first(const Tensor& t) { return t.permute({0, 3, 1, 2}).contiguous(); }

std::vector<ConvTensors> laid_out(const std::vector<ConvTensors>& sets, ImageLayout layout) {
  if (layout == ImageLayout::channels_last) return sets;
  std::vector<ConvTensors> out;
  for (const ConvTensors& set : sets) out.push_back({channels_first(set.x), channels_first(set.weight), channels_first(set.y)});
  return out;
}

void add_rivals(const std::shared_ptr<const DnnHandle>& handle, ConvPass pass, const ConvShape& shape,
                const std::vector<ConvTensors>& sets, ImageLayout layout, bool tf32, std::vector<RotatedSide>& rivals) {
  const Tensor& x = sets.front().x;
  const ConvTensors& tensors = sets.front();
  std::vector<DnnEngine> engines =
      cuda::dnn_engines(handle->get(), {.pass = core_pass(pass),
                                        .geometry = geometry_of(tensors.x, tensors.weight, tensors.y, shape.options()),
                                        .images = x.dtype(),
                                        .weights = x.dtype(),
                                        .layout = layout,
                                        .tf32 = tf32,
                                        .exact = false,
                                        .workspace = kMostWorkspace,
                                        .lists = {kMostOfAList, kMostOfAList, kMostOfAList}});
  if (engines.empty()) return;
  const std::int64_t most = std::ranges::max_element(engines, {}, &DnnEngine::workspace)->workspace;
  const auto shared = std::make_shared<Shared>();
  shared->handle = handle;
  shared->sets = laid_out(sets, layout);
  shared->workspace = Tensor::empty({std::max<std::int64_t>(most, 1)}, DType::u8, x.device());
  for (const ConvTensors& set : shared->sets) {
    shared->packs.emplace_back(cuda::variant_pack({set.x.raw(), set.weight.raw(), set.y.raw()}, shared->workspace.raw()));
  }
  std::function<Tensor(const Tensor&)> in_order;
  if (layout == ImageLayout::channels_first) in_order = [](const Tensor& y) { return y.permute({0, 2, 3, 1}); };
  const char* const where = layout == ImageLayout::channels_last ? "NHWC" : "NCHW";
  for (DnnEngine& made : engines) {
    const std::string name = str("cuDNN, ", where, ", ", made.offer, ", engine ", made.index);
    const auto engine = std::make_shared<const DnnEngine>(std::move(made));
    const auto run = [shared, engine, name](std::size_t set) {
      check(cudnnBackendExecute(shared->handle->get(), engine->plan.get(), shared->packs[set].get()), name.c_str());
    };
    rivals.push_back({name, run, shared->sets.front().result(pass), in_order});
  }
}

}  // namespace

std::vector<RotatedSide> cudnn_rivals(ConvPass pass, const ConvShape& shape, const std::vector<ConvTensors>& sets, bool tf32) {
  const auto handle = std::make_shared<const DnnHandle>(make_handle(sets.front().x.device()));
  std::vector<RotatedSide> rivals;
  for (const ImageLayout layout : {ImageLayout::channels_last, ImageLayout::channels_first}) {
    add_rivals(handle, pass, shape, sets, layout, tf32, rivals);
  }
  return rivals;
}

}  // namespace tessera::bench
