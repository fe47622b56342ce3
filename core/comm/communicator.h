// Processes that compute together, each with a rank from 0 on. Every function here but rank(), size(), fail() and end_all() is
// collective: all ranks call the same ones in the same order, and none returns before the others have called it. Ranks that call
// different ones, or with different sizes or types, get an InternalError that says what each has called; nobody waits for ever or
// reads another's bytes as something else. Calls come from one thread.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "core/support/error.h"
#include "core/tensor.h"

namespace tessera {

// Thrown on rank 0 by a collective function that another rank does not come to, because it has failed: the message is
// "rank 3: " and what that rank has told.
class RankFailed final : public Error {
 public:
  RankFailed(int exit_code, const std::string& message) : Error(message), exit_code_(exit_code) {}
  int exit_code() const noexcept { return exit_code_; }  // that the rank would have ended with

 private:
  int exit_code_;
};

class Communicator {
 public:
  virtual ~Communicator() = default;
  virtual int rank() const noexcept = 0;
  virtual int size() const noexcept = 0;

  // Each element becomes its sum over the ranks, ((x0 + x1) + x2) + ..., in the tensor's own type: the same bytes on every rank,
  // in every run, whatever the size. f32 or f64, contiguous, on the CPU or on a GPU, where the work queued behind it sees the
  // sums; throws DTypeError or ShapeError. Ranks have to give the same `name`, too, which says whose values they are.
  virtual void all_reduce(const Tensor& values, std::string_view name = {}) = 0;
  // Rank 0's bytes, of any length, on every rank.
  virtual void broadcast(std::string& bytes) = 0;
  // What each rank gives, by rank; lengths may differ.
  virtual std::vector<std::string> all_gather(std::string_view bytes) = 0;
  // The flags that any rank has set.
  virtual std::uint64_t any(std::uint64_t flags) = 0;
  virtual void barrier() = 0;
  // From now on ranks hear of each other every second, whatever else they do. Where a rank does not answer for kSilence
  // (core/comm/heartbeat.h), another thread calls `silent` with it; `silent` has to end all ranks. Does nothing where MPI serves
  // one thread alone.
  virtual void watch(std::function<void(int rank)> silent) = 0;
  // A second communicator of the same ranks, for calls by one other thread while calls on this one go on. Its calls come in the
  // same order on every rank, but each rank may mix them with those on this one as it likes. Collective when it is first asked
  // for. It lives as long as this one; null where MPI serves one thread alone.
  virtual Communicator* beside() = 0;

  // Called by a rank above 0 that has failed. Rank 0's next collective function throws RankFailed; this rank waits for the end.
  [[noreturn]] virtual void fail(int exit_code, std::string_view why) = 0;
  // Ends the processes of all ranks, this one too, with this exit code: for rank 0 of a program whose work has failed, since the
  // other ranks would wait for it. From any thread.
  [[noreturn]] virtual void end_all(int exit_code) = 0;
};

// Throws what all_reduce() says of a tensor that it does not take.
void check_reducible(const Tensor& values);

// The communicator of a process that computes alone: rank 0 of 1, where every function leaves its argument as it is.
Communicator& one_process();

}  // namespace tessera
