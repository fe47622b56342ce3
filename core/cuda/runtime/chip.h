// How fast a GPU is, for the models that predict the time of kernels. What no attribute of the driver tells stands here once.
// What is called fitted was fitted, as the constants of the models were, to an H100's times of `cuda_op_bench --part core` and
// `--part tucker`, and stands for other GPUs until theirs are there. The other numbers are data sheets' or guesses.
#pragma once

#include <cstddef>

#include "core/cuda/runtime/limits.h"

namespace tessera::cuda {

// Bytes of shared memory that each block takes besides its own (CUDA C++ Programming Guide, capabilities 8.0 and above).
inline constexpr std::size_t kReservedShared = 1024;

struct Chip {
  double clock = 0;   // Hz
  double memory = 0;  // bytes a second, at peak
  double cache = 0;   // likewise of the L2 cache, all processors together

  // Per streaming multiprocessor and cycle.
  double lanes = 128;    // multiply-adds in f32 (CUDA C++ Programming Guide, throughput of arithmetic instructions)
  double tensor = 1024;  // in half types by mma, in tf32 half as many (NVIDIA's A100 whitepaper; a guess for Hopper)
  double library_tensor = 1024;  // likewise of a library's kernels, which use Hopper's wgmma (NVIDIA's H100 whitepaper)
  double shared = 128;   // bytes of shared memory: 32 banks of 4 (CUDA C++ Programming Guide)
  double l2 = 24;        // bytes of the L2 cache while all read: a guess, half of what the A100 whitepaper's 5120 make

  // Fitted, in seconds.
  double launch = 2.3e-6;          // from one kernel's end to the next one's first work, and until its results are out
  double next_launch = 1.55e-6;    // of a short kernel that waits behind another
  double library_launch = 3.7e-6;  // all of a library's call but its products

  double library_share = 0.88;  // fitted: of the f32 units' peak that a library's largest blocks reach, small ones less
};

// Generations that are not known are taken for the newest known one below theirs, clocks that the driver does not tell for an
// A100's.
Chip chip_of(const Limits& limits);

}  // namespace tessera::cuda
