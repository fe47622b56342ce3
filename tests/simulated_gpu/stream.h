// Streams, events and graphs of the simulated GPU. What is put into a stream runs when somebody waits for it and no sooner, so
// that a wait that is missing shows; the memory of the GPU can be read and written only while it runs.
#pragma once

#include <cuda_runtime_api.h>

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "tests/simulated_gpu/block.h"

namespace tessera::simulated_gpu {

using Work = std::function<void()>;

// Everything below is called under it.
std::recursive_mutex& gpu_mutex();

struct Queue {
  std::deque<Work> work;
  std::uint64_t put = 0, done = 0;
};
std::shared_ptr<Queue> make_queue();

}  // namespace tessera::simulated_gpu

struct CUgraph_st {
  std::vector<tessera::simulated_gpu::Work> nodes;
};
struct CUgraphExec_st {
  std::shared_ptr<const std::vector<tessera::simulated_gpu::Work>> nodes;  // launches that wait share them
};
struct CUstream_st {
  std::shared_ptr<tessera::simulated_gpu::Queue> queue = tessera::simulated_gpu::make_queue();
  std::unique_ptr<CUgraph_st> recorded;  // while a graph is
  std::thread::id recorder;
  bool broken = false;  // the recording
};
struct CUevent_st {
  std::shared_ptr<tessera::simulated_gpu::Queue> queue;  // none: never recorded
  std::uint64_t position = 0;  // in the queue
  std::shared_ptr<std::chrono::steady_clock::time_point> time;
};

namespace tessera::simulated_gpu {

// Into the stream, or into the graph that is recorded on it.
void put(cudaStream_t stream, Work work);
// Runs what was put before `position`.
void run_until(Queue& queue, std::uint64_t position);
void run_all_streams();

// A kernel, put into the stream. A launch that CUDA refuses shows in cudaGetLastError().
void start(const Launch& launch, cudaStream_t stream, std::function<void()> thread);

// Memory of the GPU, filled with NaN; the host cannot touch it but from work that runs.
void* take_memory(std::size_t bytes);
bool give_memory(void* memory);
std::size_t free_memory();

// Between the bounds of memory that was taken.
bool is_gpu_memory(const void* address);
void add_pinned(void* memory, std::size_t bytes);
bool remove_pinned(void* memory);
bool is_pinned(const void* address);

cudaError_t set_error(cudaError_t status);
cudaError_t take_error();
// Static shared memory of every kernel, whatever it has: the host's compiler does not tell. It counts with the dynamic memory of
// a launch, so that one of just under 48 KiB needs an allowance.
inline constexpr std::size_t kStaticShared = 256;
// Dynamic shared memory that cudaFuncSetAttribute allowed; where nothing was said 48 KiB with the static one.
void allow_shared(const void* function, std::size_t bytes);
std::size_t allowed_shared(const void* function);

}  // namespace tessera::simulated_gpu
