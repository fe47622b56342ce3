#include "core/cuda/runtime/context.h"

#include <array>
#include <memory>
#include <mutex>
#include <string>

#include "core/cuda/runtime/error.h"
#include "core/cuda/runtime/handle.h"
#include "core/device/device_info.h"
#include "core/device/device_work.h"
#include "core/device/transfer_stats.h"
#include "core/support/error.h"

namespace tessera::cuda {
namespace {

using Stream = UniqueHandle<cudaStream_t, cudaStreamDestroy>;

int attribute(cudaDeviceAttr which, int device) {
  int value = 0;
  check(cudaDeviceGetAttribute(&value, which, device), "cuda device");
  return value;
}

Limits read_limits(int device) {
  Limits limits;
  limits.processors = attribute(cudaDevAttrMultiProcessorCount, device);
  limits.capability = capability_of(device);
  limits.threads_per_processor = attribute(cudaDevAttrMaxThreadsPerMultiProcessor, device);
  limits.shared_per_block = static_cast<std::size_t>(attribute(cudaDevAttrMaxSharedMemoryPerBlockOptin, device));
  limits.shared_per_processor = static_cast<std::size_t>(attribute(cudaDevAttrMaxSharedMemoryPerMultiprocessor, device));
  limits.l2 = static_cast<std::size_t>(attribute(cudaDevAttrL2CacheSize, device));
  limits.clock = attribute(cudaDevAttrClockRate, device);
  limits.memory_clock = attribute(cudaDevAttrMemoryClockRate, device);
  limits.memory_bits = attribute(cudaDevAttrGlobalMemoryBusWidth, device);
  return limits;
}

// Non-blocking: we never use the legacy stream, which would wait for all other streams.
Stream make_stream() {
  cudaStream_t stream = nullptr;
  check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "cuda stream");
  return Stream(stream);
}

struct Context {
  explicit Context(int device) : limits(read_limits(device)), compute(make_stream()), copies(make_stream()) {}
  Limits limits;
  Stream compute;
  Stream copies;
};

constexpr int kMostDevices = 64;

// Makes the device current on this thread. Contexts are never destroyed: static objects may hold tensors until after main.
Context& context_of(int device) {
  static std::mutex& mutex = *new std::mutex;
  static auto& contexts = *new std::array<std::unique_ptr<Context>, kMostDevices>;
  const std::lock_guard lock(mutex);
  std::unique_ptr<Context>& context = contexts[static_cast<std::size_t>(device)];
  if (!context) {
    const std::string why = why_not(Device::cuda(device));
    TESSERA_CHECK(why.empty(), DeviceError, Device::cuda(device), " cannot be used: ", why);
  }
  check(cudaSetDevice(device), "cuda device");
  if (!context) context = std::make_unique<Context>(device);
  return *context;
}

Context& enter(Device device) {
  static const int count = count_devices();
  TESSERA_CHECK(count > 0, DeviceError, device, " cannot be used: ", why_no_device());
  TESSERA_CHECK(device.index() < count && device.index() < kMostDevices, DeviceError, device, " does not exist; there ",
                count == 1 ? "is 1 GPU" : "are ", count == 1 ? std::string() : str(count, " GPUs"), ", counted from cuda:0");
  return context_of(device.index());
}

}  // namespace

int capability_of(int device) {
  return 10 * attribute(cudaDevAttrComputeCapabilityMajor, device) + attribute(cudaDevAttrComputeCapabilityMinor, device);
}

cudaStream_t stream_of(Device device) { return enter(device).compute.get(); }
cudaStream_t copy_stream_of(Device device) { return enter(device).copies.get(); }
const Limits& limits_of(Device device) { return enter(device).limits; }

void allow_shared(const void* kernel, std::size_t dynamic, Device device, const char* operation) {
  cudaFuncAttributes attributes{};
  check(cudaFuncGetAttributes(&attributes, kernel), operation);
  const std::size_t most = shared_to_allow(dynamic, attributes.sharedSizeBytes, limits_of(device));
  if (most == 0) return;
  check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(most)), operation);
}

void wait(Device device, const char* operation) {
  count_transfer(Transfer::synchronization);
  check(cudaStreamSynchronize(stream_of(device)), operation);
}

void wait_for(Device device) { wait(device, "synchronize"); }

}  // namespace tessera::cuda
