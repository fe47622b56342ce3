#include "core/cuda/libraries/dnn_engines.h"

#include <algorithm>
#include <initializer_list>
#include <optional>
#include <set>
#include <utility>

#include "core/cuda/runtime/error.h"
#include "core/support/error.h"
#include "core/support/log.h"

namespace tessera::cuda {
namespace {

constexpr std::int64_t kAlignment = 16;  // bytes; engines ask for no more, and our blocks have more
constexpr std::int64_t kImageId = 1, kFilterId = 2, kResultId = 3;  // ids of the tensors in a pass

// Strides of a tensor with dimensions in cuDNN's order: images, channels, height, width.
std::vector<std::int64_t> strides_of(const std::vector<std::int64_t>& dims, ImageLayout layout) {
  const std::int64_t c = dims[1], h = dims[2], w = dims[3];
  if (layout == ImageLayout::channels_last) return {h * w * c, 1, w * c, c};
  return {c * h * w, h * w, w, 1};
}

DnnBackend tensor(std::int64_t id, const Shape& channels_last, DType dtype, ImageLayout layout) {
  const std::vector<std::int64_t> dims{channels_last[0], channels_last[3], channels_last[1], channels_last[2]};
  DnnBackend made(CUDNN_BACKEND_TENSOR_DESCRIPTOR);
  made.set(CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, std::vector{id})
      .set(CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE,
           std::vector{dnn_type(dtype)})
      .set(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, CUDNN_TYPE_INT64, std::vector{kAlignment})
      .set(CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, dims)
      .set(CUDNN_ATTR_TENSOR_STRIDES, CUDNN_TYPE_INT64, strides_of(dims, layout));
  TESSERA_CHECK(made.finalize(), DeviceError, "cuDNN refuses a tensor of ", channels_last);
  return made;
}

DnnBackend convolution(const Conv2dGeometry& g) {
  const auto of = [](const Extent& extent) { return std::vector<std::int64_t>{extent.h, extent.w}; };
  DnnBackend made(CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR);
  made.set(CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, CUDNN_TYPE_INT64, std::vector<std::int64_t>{2})
      .set(CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, std::vector{CUDNN_DATA_FLOAT})
      .set(CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_TYPE_CONVOLUTION_MODE, std::vector{CUDNN_CROSS_CORRELATION})
      .set(CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, CUDNN_TYPE_INT64, of(g.options.padding))
      .set(CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, CUDNN_TYPE_INT64, of(g.options.padding))
      .set(CUDNN_ATTR_CONVOLUTION_DILATIONS, CUDNN_TYPE_INT64, of(g.options.dilation))
      .set(CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, CUDNN_TYPE_INT64, of(g.options.stride));
  TESSERA_CHECK(made.finalize(), DeviceError, "cuDNN refuses the convolution ", describe(g));
  return made;
}

// The constants that differ between the operations of the passes.
struct PassNames {
  cudnnBackendDescriptorType_t operation;
  cudnnBackendAttributeName_t convolution, x, weight, y, alpha, beta;
};

PassNames names_of(Conv2dPass pass) {
  switch (pass) {
    case Conv2dPass::forward:
      return {CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA};
    case Conv2dPass::backward_input:
      return {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA};
    case Conv2dPass::backward_weight:
      return {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA};
  }
  throw InternalError("convolution: unknown pass");
}

DnnBackend operation_graph(cudnnHandle_t handle, const DnnBackend& operation) {
  DnnBackend graph(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
  graph.set(CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, std::vector{handle})
      .set(CUDNN_ATTR_OPERATIONGRAPH_OPS, operation);
  TESSERA_CHECK(graph.finalize(), DeviceError, "cuDNN refuses the graph of a convolution");
  return graph;
}

std::vector<DnnBackend> configurations(const DnnBackend& graph, cudnnBackendHeurMode_t mode) {
  DnnBackend heuristic(CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
  heuristic.set(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, graph)
      .set(CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, std::vector{mode});
  if (!heuristic.finalize()) return {};
  std::int64_t count = 0;
  check(
      cudnnBackendGetAttribute(heuristic.get(), CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_TYPE_BACKEND_DESCRIPTOR, 0, &count, nullptr),
      "conv2d");
  std::vector<DnnBackend> found;
  std::vector<cudnnBackendDescriptor_t> handles;
  for (std::int64_t i = 0; i < count; ++i) {
    handles.push_back(found.emplace_back(DnnBackend(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR)).get());
  }
  std::int64_t filled = 0;
  check(cudnnBackendGetAttribute(heuristic.get(), CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_TYPE_BACKEND_DESCRIPTOR, count, &filled,
                                 handles.data()),
        "conv2d");
  found.resize(static_cast<std::size_t>(filled));
  return found;
}

struct Engine {
  std::int64_t index = -1;
  std::vector<cudnnBackendNumericalNote_t> notes;

  bool has(std::initializer_list<cudnnBackendNumericalNote_t> any) const {
    return std::ranges::any_of(any, [&](cudnnBackendNumericalNote_t note) { return std::ranges::count(notes, note) > 0; });
  }
};

Engine engine_of(const DnnBackend& config) {
  const DnnBackend engine(CUDNN_BACKEND_ENGINE_DESCRIPTOR);
  cudnnBackendDescriptor_t handle = engine.get();
  std::int64_t count = 0;
  check(cudnnBackendGetAttribute(config.get(), CUDNN_ATTR_ENGINECFG_ENGINE, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &count, &handle),
        "conv2d");
  Engine found;
  check(cudnnBackendGetAttribute(handle, CUDNN_ATTR_ENGINE_GLOBAL_INDEX, CUDNN_TYPE_INT64, 1, &count, &found.index),
        "conv2d");
  found.notes.resize(CUDNN_NUMERICAL_NOTE_TYPE_COUNT);
  check(cudnnBackendGetAttribute(handle, CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, CUDNN_TYPE_NUMERICAL_NOTE,
                                 CUDNN_NUMERICAL_NOTE_TYPE_COUNT, &count, found.notes.data()),
        "conv2d");
  found.notes.resize(static_cast<std::size_t>(count));
  return found;
}

bool may_take(const Engine& engine, const DnnRequest& r) {
  const bool f32 = r.images == DType::f32;
  if (f32 && !r.tf32 &&
      engine.has({CUDNN_NUMERICAL_NOTE_TENSOR_CORE, CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS,
                  CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION})) {
    return false;
  }
  if (!r.exact) return true;
  if (engine.has({CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC, CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION,
                  CUDNN_NUMERICAL_NOTE_FFT, CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_13x13})) {
    return false;
  }
  return f32 || !engine.has({CUDNN_NUMERICAL_NOTE_WINOGRAD});
}

// Type and value of each knob that a configuration sets, sorted by type: two heuristics often offer the same configuration.
std::vector<std::pair<int, std::int64_t>> knobs_of(const DnnBackend& config) {
  std::vector<DnnBackend> choices;
  std::vector<cudnnBackendDescriptor_t> handles;
  for (int i = 0; i < CUDNN_KNOB_TYPE_COUNTS; ++i) {
    handles.push_back(choices.emplace_back(DnnBackend(CUDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR)).get());
  }
  std::int64_t count = 0;
  check(cudnnBackendGetAttribute(config.get(), CUDNN_ATTR_ENGINECFG_KNOB_CHOICES, CUDNN_TYPE_BACKEND_DESCRIPTOR,
                                 CUDNN_KNOB_TYPE_COUNTS, &count, handles.data()),
        "conv2d");
  std::vector<std::pair<int, std::int64_t>> knobs;
  for (std::int64_t i = 0; i < std::min<std::int64_t>(count, CUDNN_KNOB_TYPE_COUNTS); ++i) {
    const cudnnBackendDescriptor_t choice = handles[static_cast<std::size_t>(i)];
    cudnnBackendKnobType_t type{};
    std::int64_t value = 0;
    std::int64_t filled = 0;
    check(cudnnBackendGetAttribute(choice, CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE, CUDNN_TYPE_KNOB_TYPE, 1, &filled, &type),
          "conv2d");
    check(cudnnBackendGetAttribute(choice, CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE, CUDNN_TYPE_INT64, 1, &filled, &value),
          "conv2d");
    knobs.emplace_back(static_cast<int>(type), value);
  }
  std::ranges::sort(knobs);
  return knobs;
}

// Tells configurations apart: the engine's index and its knobs.
using Identity = std::pair<std::int64_t, std::vector<std::pair<int, std::int64_t>>>;

std::string name_of(const Identity& identity) {
  std::string name = str("engine ", identity.first);
  for (const auto& [type, value] : identity.second) name += str(" k", type, '=', value);
  return name;
}

// An engine with its plan. Nothing if the offered configuration does not suit this GPU or these sizes, or needs more workspace.
std::optional<DnnEngine> with_plan(cudnnHandle_t handle, DnnBackend config, const Identity& identity, std::string offer,
                                   std::int64_t most_workspace) {
  DnnBackend plan(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
  plan.set(CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE, std::vector{handle})
      .set(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, config);
  if (!plan.finalize()) return std::nullopt;
  std::int64_t count = 0;
  std::int64_t workspace = 0;
  check(cudnnBackendGetAttribute(plan.get(), CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, CUDNN_TYPE_INT64, 1, &count, &workspace),
        "conv2d");
  if (workspace > most_workspace) return std::nullopt;
  return DnnEngine{std::move(offer), identity.first, name_of(identity), std::move(config), std::move(plan), workspace};
}

// Adds at most `most` engines from the front of a list, without those that `seen` holds.
void add_engines(cudnnHandle_t handle, std::vector<DnnBackend> configs, const std::string& list, std::size_t most,
                 const DnnRequest& request, std::set<Identity>& seen, std::vector<DnnEngine>& engines) {
  std::size_t added = 0;
  for (std::size_t i = 0; i < configs.size() && added < most; ++i) {
    try {
      const Engine engine = engine_of(configs[i]);
      if (!may_take(engine, request)) continue;
      const Identity identity{engine.index, knobs_of(configs[i])};
      if (!request.only.empty() && name_of(identity) != request.only) continue;
      if (!seen.insert(identity).second) continue;
      auto made = with_plan(handle, std::move(configs[i]), identity, str(list, ' ', i), request.workspace);
      if (!made) continue;
      engines.push_back(*std::move(made));
      ++added;
    } catch (const DeviceError& error) {  // the other engines can still run
      log_warning(str("conv2d: cuDNN's ", list, ' ', i, " takes no part: ", error.what()));
    }
  }
}

}  // namespace

DnnBackend::DnnBackend(cudnnBackendDescriptorType_t type) {
  cudnnBackendDescriptor_t handle = nullptr;
  check(cudnnBackendCreateDescriptor(type, &handle), "conv2d");
  handle_ = BackendHandle(handle);
}

bool DnnBackend::finalize() {
  const bool done = cudnnBackendFinalize(get()) == CUDNN_STATUS_SUCCESS;
  if (!done) cuda::forget_error();
  return done;
}

DnnBackend& DnnBackend::set(cudnnBackendAttributeName_t name, const DnnBackend& other) {
  return set(name, CUDNN_TYPE_BACKEND_DESCRIPTOR, std::vector{other.get()});
}

std::vector<DnnEngine> dnn_engines(cudnnHandle_t handle, const DnnRequest& r) {
  const Conv2dGeometry& g = r.geometry;
  const PassNames names = names_of(r.pass);
  const DnnBackend x = tensor(kImageId, {g.n, g.h, g.w, g.in}, r.images, r.layout);
  const DnnBackend weight = tensor(kFilterId, {g.out, g.kh, g.kw, g.group_in()}, r.weights, r.layout);
  const DnnBackend y = tensor(kResultId, {g.n, g.oh, g.ow, g.out}, r.images, r.layout);
  const DnnBackend window = convolution(g);
  DnnBackend operation(names.operation);
  operation.set(names.convolution, window)
      .set(names.x, x)
      .set(names.weight, weight)
      .set(names.y, y)
      .set(names.alpha, CUDNN_TYPE_FLOAT, std::vector{1.0f})
      .set(names.beta, CUDNN_TYPE_FLOAT, std::vector{0.0f});
  if (!operation.finalize()) return {};
  const DnnBackend graph = operation_graph(handle, operation);

  std::vector<DnnEngine> engines;
  std::set<Identity> seen;
  const auto add = [&](cudnnBackendHeurMode_t mode, const char* list, std::size_t most) {
    if (most > 0) add_engines(handle, configurations(graph, mode), list, most, r, seen, engines);
  };
  add(CUDNN_HEUR_MODE_A, "choice A", r.lists.a);
  add(CUDNN_HEUR_MODE_B, "choice B", r.lists.b);
  add(CUDNN_HEUR_MODE_FALLBACK, "fallback", r.lists.fallback);
  return engines;
}

DnnBackend variant_pack(const std::array<void*, 3>& tensors, void* workspace) {
  DnnBackend pack(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
  pack.set(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64, std::vector{kImageId, kFilterId, kResultId})
      .set(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, std::vector<void*>(tensors.begin(), tensors.end()))
      .set(CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, std::vector{workspace});
  TESSERA_CHECK(pack.finalize(), DeviceError, "cuDNN refuses the pointers of a convolution");
  return pack;
}

}  // namespace tessera::cuda
