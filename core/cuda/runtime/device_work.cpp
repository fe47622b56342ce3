#include "core/device/device_work.h"

#include <cuda_runtime_api.h>

#include <utility>

#include "core/cuda/runtime/allocator.h"
#include "core/cuda/runtime/context.h"
#include "core/cuda/runtime/error.h"
#include "core/cuda/runtime/handle.h"
#include "core/support/error.h"

namespace tessera::cuda {
namespace {

using Event = UniqueHandle<cudaEvent_t, cudaEventDestroy>;
using Graph = UniqueHandle<cudaGraph_t, cudaGraphDestroy>;
using Executable = UniqueHandle<cudaGraphExec_t, cudaGraphExecDestroy>;

Event make_event() {
  cudaEvent_t event = nullptr;
  check(cudaEventCreate(&event), "cuda event");
  return Event(event);
}

class RecordedGraph final : public DeviceGraph {
 public:
  RecordedGraph(Device device, std::shared_ptr<BlockPool> memory, Graph graph)
      : device_(device), memory_(std::move(memory)), graph_(std::move(graph)) {
    check(cudaGraphGetNodes(graph_.get(), nullptr, &nodes_), "record_graph");
    cudaGraphExec_t executable = nullptr;
    check(cudaGraphInstantiate(&executable, graph_.get(), 0), "record_graph");
    executable_ = Executable(executable);
  }

  void replay() override { check(cudaGraphLaunch(executable_.get(), stream_of(device_)), "graph replay"); }
  std::size_t kernels() const override { return nodes_; }

 private:
  Device device_;
  std::shared_ptr<BlockPool> memory_;
  Graph graph_;
  Executable executable_;
  std::size_t nodes_ = 0;
};

// Captures the stream from construction to finish(). However the scope is left, the capture and its memory pool are ended.
class Capture {
 public:
  // The pool begins last: if another thread is recording on the device, the capture fails first and that thread's pool stays.
  explicit Capture(Device device) : device_(device), stream_(stream_of(device)) {
    check(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeThreadLocal), "record_graph");
    memory_ = allocator_of(device).begin_pool();
  }
  ~Capture() {
    if (!ended_) static_cast<void>(end());
  }
  Capture(const Capture&) = delete;
  Capture& operator=(const Capture&) = delete;

  std::unique_ptr<DeviceGraph> finish() {
    auto [status, graph] = end();
    check(status, "record_graph");
    return std::make_unique<RecordedGraph>(device_, std::move(memory_), std::move(graph));
  }

 private:
  std::pair<cudaError_t, Graph> end() noexcept {
    ended_ = true;
    allocator_of(device_).end_pool();
    cudaGraph_t graph = nullptr;
    const cudaError_t status = cudaStreamEndCapture(stream_, &graph);
    if (status != cudaSuccess) forget_error();
    return {status, Graph(graph)};
  }

  Device device_;
  cudaStream_t stream_;  // kept, because stream_of() throws after a kernel has failed
  std::shared_ptr<BlockPool> memory_;
  bool ended_ = false;
};

}  // namespace

double seconds_of_work(Device device, const std::function<void()>& work) {
  const cudaStream_t stream = stream_of(device);
  const Event begin = make_event();
  const Event end = make_event();
  wait(device, "seconds_on");
  check(cudaEventRecord(begin.get(), stream), "seconds_on");
  work();
  check(cudaEventRecord(end.get(), stream), "seconds_on");
  wait(device, "seconds_on");
  float milliseconds = 0;
  check(cudaEventElapsedTime(&milliseconds, begin.get(), end.get()), "seconds_on");
  return static_cast<double>(milliseconds) * 1e-3;
}

std::unique_ptr<DeviceGraph> graph_of(Device device, const std::function<void()>& work) {
  wait(device, "record_graph");  // a segment freed during the capture could not wait for kernels that still read it
  allocator_of(device).trim();  // the graph needs new memory for what earlier ran kernel by kernel
  Capture capture(device);
  work();
  return capture.finish();
}

}  // namespace tessera::cuda
