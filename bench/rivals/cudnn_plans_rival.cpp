#include "bench/rivals/cudnn_plans_rival.h"

#include <algorithm>
#include <optional>
#include <set>
#include <utility>

#include "core/cuda/runtime/error.h"
#include "core/support/error.h"
#include "core/support/log.h"

namespace tessera::bench {
namespace {

constexpr std::int64_t kAlignment = 16;  // bytes, the most that engines ask for; our blocks have more
constexpr std::int64_t kMostWorkspace = std::int64_t{1} << 30;
constexpr std::size_t kMostOfAList = 10;  // best first; some are compiled when they are asked for, which takes seconds

struct Heuristic {
  cudnnBackendHeurMode_t mode;
  const char* offer;
};
constexpr Heuristic kHeuristics[]{
    {CUDNN_HEUR_MODE_A, "choice A"}, {CUDNN_HEUR_MODE_B, "choice B"}, {CUDNN_HEUR_MODE_FALLBACK, "fallback"}};

// Of a tensor with the dimensions that cuDNN names: images, channels, height, width.
std::vector<std::int64_t> strides_of(const std::vector<std::int64_t>& dims, ImageLayout layout) {
  const std::int64_t c = dims[1], h = dims[2], w = dims[3];
  if (layout == ImageLayout::channels_last) return {h * w * c, 1, w * c, c};
  return {c * h * w, h * w, w, 1};
}

Backend tensor(std::int64_t id, const Shape& channels_last, DType dtype, ImageLayout layout) {
  const std::vector<std::int64_t> dims{channels_last[0], channels_last[3], channels_last[1], channels_last[2]};
  Backend made(CUDNN_BACKEND_TENSOR_DESCRIPTOR);
  made.set(CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, std::vector{id})
      .set(CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE,
           std::vector{dtype == DType::bf16 ? CUDNN_DATA_BFLOAT16 : CUDNN_DATA_FLOAT})
      .set(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, CUDNN_TYPE_INT64, std::vector{kAlignment})
      .set(CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, dims)
      .set(CUDNN_ATTR_TENSOR_STRIDES, CUDNN_TYPE_INT64, strides_of(dims, layout));
  TESSERA_CHECK(made.finalize(), DeviceError, "cuDNN refuses a tensor of ", channels_last);
  return made;
}

Backend convolution(const ConvShape& shape) {
  const std::vector<std::int64_t> padding(2, shape.padding());
  Backend made(CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR);
  made.set(CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, CUDNN_TYPE_INT64, std::vector<std::int64_t>{2})
      .set(CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, std::vector{CUDNN_DATA_FLOAT})
      .set(CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_TYPE_CONVOLUTION_MODE, std::vector{CUDNN_CROSS_CORRELATION})
      .set(CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, CUDNN_TYPE_INT64, padding)
      .set(CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, CUDNN_TYPE_INT64, padding)
      .set(CUDNN_ATTR_CONVOLUTION_DILATIONS, CUDNN_TYPE_INT64, std::vector<std::int64_t>(2, 1))
      .set(CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, CUDNN_TYPE_INT64, std::vector<std::int64_t>(2, shape.stride));
  TESSERA_CHECK(made.finalize(), DeviceError, "cuDNN refuses the convolution ", to_string(shape));
  return made;
}

// What differs between the passes' operations; alpha is null where a pass takes none.
struct PassNames {
  cudnnBackendDescriptorType_t operation;
  cudnnBackendAttributeName_t convolution, x, weight, y, alpha, beta;
};

PassNames names_of(ConvPass pass) {
  switch (pass) {
    case ConvPass::forward:
      return {CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA};
    case ConvPass::backward_input:
      return {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA};
    case ConvPass::backward_weight:
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

Backend operation_graph(cudnnHandle_t handle, const Backend& operation) {
  Backend graph(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
  graph.set(CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, std::vector{handle})
      .set(CUDNN_ATTR_OPERATIONGRAPH_OPS, operation);
  TESSERA_CHECK(graph.finalize(), DeviceError, "cuDNN refuses the graph of a convolution");
  return graph;
}

std::vector<Backend> configurations(const Backend& graph, cudnnBackendHeurMode_t mode) {
  Backend heuristic(CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
  heuristic.set(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, graph)
      .set(CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, std::vector{mode});
  if (!heuristic.finalize()) return {};
  std::int64_t count = 0;
  check(
      cudnnBackendGetAttribute(heuristic.get(), CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_TYPE_BACKEND_DESCRIPTOR, 0, &count, nullptr),
      "cuDNN heuristic");
  std::vector<Backend> found;
  std::vector<cudnnBackendDescriptor_t> handles;
  for (std::int64_t i = 0; i < count; ++i) {
    handles.push_back(found.emplace_back(Backend(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR)).get());
  }
  std::int64_t filled = 0;
  check(cudnnBackendGetAttribute(heuristic.get(), CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_TYPE_BACKEND_DESCRIPTOR, count, &filled,
                                 handles.data()),
        "cuDNN heuristic");
  found.resize(static_cast<std::size_t>(filled));
  return found;
}

struct Engine {
  std::int64_t index = -1;
  bool rounds_f32 = false;
};

Engine engine_of(const Backend& config) {
  const Backend engine(CUDNN_BACKEND_ENGINE_DESCRIPTOR);
  cudnnBackendDescriptor_t handle = engine.get();
  std::int64_t count = 0;
  check(cudnnBackendGetAttribute(config.get(), CUDNN_ATTR_ENGINECFG_ENGINE, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &count, &handle),
        "cuDNN engine");
  Engine found;
  check(cudnnBackendGetAttribute(handle, CUDNN_ATTR_ENGINE_GLOBAL_INDEX, CUDNN_TYPE_INT64, 1, &count, &found.index),
        "cuDNN engine");
  std::vector<cudnnBackendNumericalNote_t> notes(CUDNN_NUMERICAL_NOTE_TYPE_COUNT);
  check(cudnnBackendGetAttribute(handle, CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, CUDNN_TYPE_NUMERICAL_NOTE,
                                 CUDNN_NUMERICAL_NOTE_TYPE_COUNT, &count, notes.data()),
        "cuDNN engine");
  notes.resize(static_cast<std::size_t>(count));
  found.rounds_f32 = std::ranges::any_of(notes, [](cudnnBackendNumericalNote_t note) {
    return note == CUDNN_NUMERICAL_NOTE_TENSOR_CORE || note == CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS ||
           note == CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION;
  });
  return found;
}

// Type and value of each knob that the configuration sets, in the order of types: two heuristics offer the same one often.
std::vector<std::pair<int, std::int64_t>> knobs_of(const Backend& config) {
  std::vector<Backend> choices;
  std::vector<cudnnBackendDescriptor_t> handles;
  for (int i = 0; i < CUDNN_KNOB_TYPE_COUNTS; ++i) {
    handles.push_back(choices.emplace_back(Backend(CUDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR)).get());
  }
  std::int64_t count = 0;
  check(cudnnBackendGetAttribute(config.get(), CUDNN_ATTR_ENGINECFG_KNOB_CHOICES, CUDNN_TYPE_BACKEND_DESCRIPTOR,
                                 CUDNN_KNOB_TYPE_COUNTS, &count, handles.data()),
        "cuDNN knobs");
  std::vector<std::pair<int, std::int64_t>> knobs;
  for (std::int64_t i = 0; i < std::min<std::int64_t>(count, CUDNN_KNOB_TYPE_COUNTS); ++i) {
    const cudnnBackendDescriptor_t choice = handles[static_cast<std::size_t>(i)];
    cudnnBackendKnobType_t type{};
    std::int64_t value = 0;
    std::int64_t filled = 0;
    check(cudnnBackendGetAttribute(choice, CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE, CUDNN_TYPE_KNOB_TYPE, 1, &filled, &type),
          "cuDNN knob");
    check(cudnnBackendGetAttribute(choice, CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE, CUDNN_TYPE_INT64, 1, &filled, &value),
          "cuDNN knob");
    knobs.emplace_back(static_cast<int>(type), value);
  }
  std::ranges::sort(knobs);
  return knobs;
}

// The plan of a configuration; none where the configuration was offered, but not for this GPU or these sizes.
std::optional<ConvPlan> plan_of(cudnnHandle_t handle, Backend config, const std::string& name) {
  Backend plan(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
  plan.set(CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE, std::vector{handle})
      .set(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, config);
  if (!plan.finalize()) return std::nullopt;
  std::int64_t count = 0;
  std::int64_t workspace = 0;
  check(cudnnBackendGetAttribute(plan.get(), CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, CUDNN_TYPE_INT64, 1, &count, &workspace),
        "cuDNN plan");
  if (workspace > kMostWorkspace) return std::nullopt;
  return ConvPlan{name, std::move(config), std::move(plan), workspace};
}

// What tells configurations apart: the engine's index and its knobs.
using Identity = std::pair<std::int64_t, std::vector<std::pair<int, std::int64_t>>>;

// Adds the first plans of a list, without those that `seen` holds.
void add_plans(cudnnHandle_t handle, std::vector<Backend> configs, const std::string& list, bool rounding,
               std::set<Identity>& seen, std::vector<ConvPlan>& plans) {
  std::size_t added = 0;
  for (std::size_t i = 0; i < configs.size() && added < kMostOfAList; ++i) {
    try {
      const Engine engine = engine_of(configs[i]);
      if (engine.rounds_f32 && !rounding) continue;
      if (!seen.emplace(engine.index, knobs_of(configs[i])).second) continue;
      auto plan = plan_of(handle, std::move(configs[i]), str(list, ' ', i, ", engine ", engine.index));
      if (!plan) continue;
      plans.push_back(*std::move(plan));
      ++added;
    } catch (const DeviceError& error) {  // the others can run
      log_warning(str(list, ' ', i, " takes no part: ", error.what()));
    }
  }
}

}  // namespace

void check(cudnnStatus_t status, const char* call) {
  if (status != CUDNN_STATUS_SUCCESS) cuda::forget_error();
  TESSERA_CHECK(status == CUDNN_STATUS_SUCCESS, DeviceError, call, ": ", cudnnGetErrorString(status));
}

Backend::Backend(cudnnBackendDescriptorType_t type) {
  cudnnBackendDescriptor_t handle = nullptr;
  check(cudnnBackendCreateDescriptor(type, &handle), "cudnnBackendCreateDescriptor");
  handle_ = BackendHandle(handle);
}

bool Backend::finalize() {
  const bool done = cudnnBackendFinalize(get()) == CUDNN_STATUS_SUCCESS;
  if (!done) cuda::forget_error();
  return done;
}

Backend& Backend::set(cudnnBackendAttributeName_t name, const Backend& other) {
  return set(name, CUDNN_TYPE_BACKEND_DESCRIPTOR, std::vector{other.get()});
}

std::vector<ConvPlan> conv_plans(cudnnHandle_t handle, ConvPass pass, const ConvShape& shape, DType dtype, ImageLayout layout,
                                 bool tf32) {
  const PassNames names = names_of(pass);
  const Backend x = tensor(kImageId, shape.x(), dtype, layout);
  const Backend weight = tensor(kFilterId, shape.weight(), dtype, layout);
  const Backend y = tensor(kResultId, shape.y(), dtype, layout);
  const Backend window = convolution(shape);
  Backend operation(names.operation);
  operation.set(names.convolution, window)
      .set(names.x, x)
      .set(names.weight, weight)
      .set(names.y, y)
      .set(names.alpha, CUDNN_TYPE_FLOAT, std::vector{1.0f})
      .set(names.beta, CUDNN_TYPE_FLOAT, std::vector{0.0f});
  if (!operation.finalize()) return {};
  const Backend graph = operation_graph(handle, operation);

  const bool rounding = tf32 || dtype != DType::f32;
  const char* const where = layout == ImageLayout::channels_last ? "NHWC" : "NCHW";
  std::vector<ConvPlan> plans;
  std::set<Identity> seen;
  for (const auto& [mode, offer] : kHeuristics) {
    add_plans(handle, configurations(graph, mode), str("cuDNN, ", where, ", ", offer), rounding, seen, plans);
  }
  return plans;
}

Backend variant_pack(const std::array<void*, 3>& tensors, void* workspace) {
  Backend pack(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
  pack.set(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64, std::vector{kImageId, kFilterId, kResultId})
      .set(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, std::vector<void*>(tensors.begin(), tensors.end()))
      .set(CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, std::vector{workspace});
  TESSERA_CHECK(pack.finalize(), DeviceError, "cuDNN refuses the pointers of a convolution");
  return pack;
}

}  // namespace tessera::bench
