// The CUDA runtime functions that tessera calls, for one simulated GPU. CUDA_VISIBLE_DEVICES="" hides it.
#include <cuda_runtime_api.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "tests/simulated_gpu/chip.h"
#include "tests/simulated_gpu/stream.h"

namespace {

using namespace tessera::simulated_gpu;
using Lock = std::lock_guard<std::recursive_mutex>;

// State of this thread: its capture mode and the stream that it records.
thread_local cudaStreamCaptureMode mode = cudaStreamCaptureModeGlobal;
thread_local cudaStream_t recording = nullptr;

// A call that CUDA considers unsafe breaks the recording of the calling thread, unless the mode is relaxed.
bool is_refused() {
  if (recording == nullptr || mode == cudaStreamCaptureModeRelaxed) return false;
  recording->broken = true;
  return true;
}

cudaError_t unsupported_in_recording() { return set_error(cudaErrorStreamCaptureUnsupported); }

}  // namespace

extern "C" {

cudaError_t cudaGetLastError() { return take_error(); }
const char* cudaGetErrorName(cudaError_t) { return "error of the simulated GPU"; }
const char* cudaGetErrorString(cudaError_t status) {
  static thread_local std::string text;
  text = "cudaError " + std::to_string(static_cast<int>(status));
  return text.c_str();
}
cudaError_t cudaRuntimeGetVersion(int* version) {
  *version = CUDART_VERSION;
  return cudaSuccess;
}
cudaError_t cudaDriverGetVersion(int* version) { return cudaRuntimeGetVersion(version); }

cudaError_t cudaGetDeviceCount(int* count) {
  const char* const visible = std::getenv("CUDA_VISIBLE_DEVICES");
  *count = visible != nullptr && *visible == '\0' ? 0 : 1;
  return *count == 0 ? set_error(cudaErrorNoDevice) : cudaSuccess;
}
cudaError_t cudaSetDevice(int device) { return device == 0 ? cudaSuccess : set_error(cudaErrorInvalidDevice); }

// Each process has its own GPU.
cudaError_t cudaDeviceGetPCIBusId(char* name, int length, int) {
  std::snprintf(name, static_cast<std::size_t>(length), "process %d", static_cast<int>(getpid()));
  return cudaSuccess;
}

cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int) {
  switch (attribute) {
    case cudaDevAttrMultiProcessorCount: *value = kChip.processors; break;
    case cudaDevAttrComputeCapabilityMajor: *value = kChip.capability / 10; break;
    case cudaDevAttrComputeCapabilityMinor: *value = kChip.capability % 10; break;
    case cudaDevAttrMaxThreadsPerMultiProcessor: *value = kChip.threads_per_processor; break;
    case cudaDevAttrMaxSharedMemoryPerBlockOptin: *value = static_cast<int>(kChip.shared_per_block); break;
    case cudaDevAttrMaxSharedMemoryPerMultiprocessor: *value = static_cast<int>(kChip.shared_per_processor); break;
    case cudaDevAttrL2CacheSize: *value = static_cast<int>(kChip.l2); break;
    case cudaDevAttrClockRate: *value = kChip.clock; break;
    case cudaDevAttrMemoryClockRate: *value = kChip.memory_clock; break;
    case cudaDevAttrGlobalMemoryBusWidth: *value = kChip.memory_bits; break;
    default: return set_error(cudaErrorInvalidValue);
  }
  return cudaSuccess;
}
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int) {
  *properties = {};
  std::strcpy(properties->name, "simulated GPU");
  properties->totalGlobalMem = kChip.memory;
  return cudaSuccess;
}

cudaError_t cudaMalloc(void** memory, std::size_t bytes) {
  const Lock lock(gpu_mutex());
  if (is_refused()) return unsupported_in_recording();
  *memory = take_memory(bytes);
  return *memory == nullptr ? set_error(cudaErrorMemoryAllocation) : cudaSuccess;
}
cudaError_t cudaFree(void* memory) {
  const Lock lock(gpu_mutex());
  if (is_refused()) return unsupported_in_recording();
  run_all_streams();
  return memory == nullptr || give_memory(memory) ? cudaSuccess : set_error(cudaErrorInvalidValue);
}
cudaError_t cudaMemGetInfo(std::size_t* free, std::size_t* total) {
  const Lock lock(gpu_mutex());
  *free = free_memory();
  *total = kChip.memory;
  return cudaSuccess;
}
cudaError_t cudaHostAlloc(void** memory, std::size_t bytes, unsigned) {
  const Lock lock(gpu_mutex());
  if (is_refused()) return unsupported_in_recording();
  *memory = std::malloc(bytes);
  add_pinned(*memory, bytes);
  return cudaSuccess;
}
cudaError_t cudaFreeHost(void* memory) {
  const Lock lock(gpu_mutex());
  if (is_refused()) return unsupported_in_recording();
  if (!remove_pinned(memory)) return set_error(cudaErrorInvalidValue);
  std::free(memory);
  return cudaSuccess;
}

// A copy to pageable host memory is done when the call returns. A copy from there, or with pinned memory, runs whenever the
// stream runs, as CUDA permits.
cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind, cudaStream_t stream) {
  const Lock lock(gpu_mutex());
  const bool into_gpu = kind == cudaMemcpyHostToDevice || kind == cudaMemcpyDeviceToDevice;
  const bool out_of_gpu = kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyDeviceToDevice;
  if (is_gpu_memory(to) != into_gpu || is_gpu_memory(from) != out_of_gpu) return set_error(cudaErrorInvalidMemcpyDirection);
  const void* const host = into_gpu ? from : to;
  const bool pageable = kind != cudaMemcpyDeviceToDevice && !is_pinned(host);
  if (pageable && stream->recorded) {
    stream->broken = true;
    return unsupported_in_recording();
  }
  put(stream, [=] { std::memmove(to, from, bytes); });
  if (pageable && out_of_gpu) run_until(*stream->queue, stream->queue->put);
  return cudaSuccess;
}

cudaError_t cudaFuncSetAttribute(const void* function, cudaFuncAttribute attribute, int value) {
  const Lock lock(gpu_mutex());
  if (attribute != cudaFuncAttributeMaxDynamicSharedMemorySize) return set_error(cudaErrorInvalidValue);
  if (value < 0 || static_cast<std::size_t>(value) + kStaticShared > kChip.shared_per_block)
    return set_error(cudaErrorInvalidValue);
  allow_shared(function, static_cast<std::size_t>(value));
  return cudaSuccess;
}

cudaError_t cudaFuncGetAttributes(cudaFuncAttributes* attributes, const void*) {
  *attributes = {};
  attributes->sharedSizeBytes = kStaticShared;
  return cudaSuccess;
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned) {
  *stream = new CUstream_st;
  return cudaSuccess;
}
cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  const Lock lock(gpu_mutex());
  run_until(*stream->queue, stream->queue->put);
  delete stream;
  return cudaSuccess;
}
cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  const Lock lock(gpu_mutex());
  if (stream->recorded) {
    stream->broken = true;
    return unsupported_in_recording();
  }
  if (is_refused()) return unsupported_in_recording();
  run_until(*stream->queue, stream->queue->put);
  return cudaSuccess;
}
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned) {
  const Lock lock(gpu_mutex());
  if (!event->queue) return cudaSuccess;
  if (stream->recorded) {
    stream->broken = true;
    return set_error(cudaErrorStreamCaptureIsolation);
  }
  put(stream, [queue = event->queue, position = event->position] { run_until(*queue, position); });
  return cudaSuccess;
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned) {
  *event = new CUevent_st;
  return cudaSuccess;
}
cudaError_t cudaEventCreate(cudaEvent_t* event) { return cudaEventCreateWithFlags(event, cudaEventDefault); }
cudaError_t cudaEventDestroy(cudaEvent_t event) {
  delete event;
  return cudaSuccess;
}
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  const Lock lock(gpu_mutex());
  if (stream->recorded) {
    stream->broken = true;  // CUDA allows it, but tessera does not use it
    return unsupported_in_recording();
  }
  event->queue = stream->queue;
  event->time = std::make_shared<std::chrono::steady_clock::time_point>();
  put(stream, [time = event->time] { *time = std::chrono::steady_clock::now(); });
  event->position = stream->queue->put;
  return cudaSuccess;
}
cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  const Lock lock(gpu_mutex());
  if (is_refused()) return unsupported_in_recording();
  if (event->queue) run_until(*event->queue, event->position);
  return cudaSuccess;
}
cudaError_t cudaEventQuery(cudaEvent_t event) {
  const Lock lock(gpu_mutex());
  return event->queue && event->queue->done < event->position ? set_error(cudaErrorNotReady) : cudaSuccess;
}
cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t begin, cudaEvent_t end) {
  const Lock lock(gpu_mutex());
  const auto is_done = [](const CUevent_st& event) { return event.queue && event.queue->done >= event.position; };
  if (!is_done(*begin) || !is_done(*end)) return set_error(cudaErrorNotReady);
  *milliseconds = std::chrono::duration<float, std::milli>(*end->time - *begin->time).count();
  return cudaSuccess;
}

cudaError_t cudaThreadExchangeStreamCaptureMode(cudaStreamCaptureMode* other) {
  std::swap(mode, *other);
  return cudaSuccess;
}
cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode) {
  const Lock lock(gpu_mutex());
  if (stream->recorded) return set_error(cudaErrorIllegalState);
  stream->recorded = std::make_unique<CUgraph_st>();
  stream->recorder = std::this_thread::get_id();
  stream->broken = false;
  recording = stream;
  return cudaSuccess;
}
cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph) {
  const Lock lock(gpu_mutex());
  *graph = nullptr;
  if (!stream->recorded || stream->recorder != std::this_thread::get_id()) return set_error(cudaErrorStreamCaptureWrongThread);
  recording = nullptr;
  const auto recorded = std::move(stream->recorded);
  if (stream->broken) return set_error(cudaErrorStreamCaptureInvalidated);
  *graph = new CUgraph_st(*recorded);
  return cudaSuccess;
}
cudaError_t cudaGraphGetNodes(cudaGraph_t graph, cudaGraphNode_t*, std::size_t* count) {
  *count = graph->nodes.size();
  return cudaSuccess;
}
cudaError_t cudaGraphInstantiate(cudaGraphExec_t* executable, cudaGraph_t graph, unsigned long long) {
  *executable = new CUgraphExec_st{std::make_shared<std::vector<Work>>(graph->nodes)};
  return cudaSuccess;
}
cudaError_t cudaGraphLaunch(cudaGraphExec_t executable, cudaStream_t stream) {
  const Lock lock(gpu_mutex());
  if (stream->recorded) return unsupported_in_recording();
  put(stream, [nodes = executable->nodes] {
    for (const Work& node : *nodes) node();
  });
  return cudaSuccess;
}
cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  delete graph;
  return cudaSuccess;
}
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t executable) {
  delete executable;
  return cudaSuccess;
}

}  // extern "C"
