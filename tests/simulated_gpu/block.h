// One block of a kernel at a time: its threads are fibers of one thread of the host, which run until they wait for one another.
// Their order is drawn anew at each barrier, shared memory is filled with NaN before a block, and copies arrive either at once or
// as late as the waits allow, so that a barrier that is missing shows. What CUDA leaves undefined ends the program with a
// message.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <functional>

namespace tessera::simulated_gpu {

struct Launch {
  dim3 blocks, threads;
  std::size_t shared = 0;  // dynamic, in bytes
  const char* name = "";
  const void* function = nullptr;
};

// Of the thread that runs: threadIdx and blockIdx.
struct Place {
  uint3 thread, block;
};
extern Place place;
extern Launch current;  // blockDim and gridDim

// Runs `thread` as every thread of every block, one block after the other.
void run_kernel(const Launch& launch, const std::function<void()>& thread);

[[noreturn]] void fail(const char* rule);

// For the threads of a kernel.
void barrier();
int lane();
// The `bytes` (at most 64) of each of the warp's 32 lanes, one behind the other, until the next but one exchange.
const void* exchange(const void* mine, std::size_t bytes);
void* dynamic_shared();
// `bytes` of the `size` bytes are read, zeros written behind them.
void copy_async(void* to, const void* from, int size, int bytes);
void commit_copies();
void wait_for_groups(int newer);
void wait_for_copies();

}  // namespace tessera::simulated_gpu
