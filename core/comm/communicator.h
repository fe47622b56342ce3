// Processes that compute together, each with a rank from 0 on. Every function here but rank(), size() and end_all() is
// collective: all ranks call the same ones in the same order, and none returns before the others have called it. Ranks that call
// different ones, or with different sizes or types, get an InternalError that says what each has called; nobody waits for ever or
// reads another's bytes as something else. Calls come from one thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/tensor.h"

namespace tessera {

class Communicator {
 public:
  virtual ~Communicator() = default;
  virtual int rank() const noexcept = 0;
  virtual int size() const noexcept = 0;

  // Each element becomes its sum over the ranks, ((x0 + x1) + x2) + ..., in the tensor's own type: the same bytes on every rank,
  // in every run, whatever the size. f32 or f64, contiguous, on the CPU; throws DTypeError, ShapeError or DeviceError.
  virtual void all_reduce(const Tensor& values) = 0;
  // Rank 0's bytes, of any length, on every rank.
  virtual void broadcast(std::string& bytes) = 0;
  // What each rank gives, by rank; lengths may differ.
  virtual std::vector<std::string> all_gather(std::string_view bytes) = 0;
  // The flags that any rank has set.
  virtual std::uint64_t any(std::uint64_t flags) = 0;
  virtual void barrier() = 0;

  // Ends the processes of all ranks, this one too, with this exit code: for a program whose own work has failed, since the other
  // ranks would wait for it.
  [[noreturn]] virtual void end_all(int exit_code) = 0;
};

// Throws what all_reduce() says of a tensor that it does not take.
void check_reducible(const Tensor& values);

// The communicator of a process that computes alone: rank 0 of 1, where every function leaves what it is given as it is.
Communicator& one_process();

}  // namespace tessera
