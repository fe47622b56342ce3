// A network on a thread of its own. What kernels prepare they keep per thread (core/device/plan_cache.h), so that it is prepared
// once whoever asks, and released with the network; and no thread of the caller's is left with other settings than it had.
#pragma once

#include <sys/types.h>

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <future>
#include <mutex>
#include <span>
#include <string>
#include <thread>

#include "capi/trained_network.h"
#include "core/device/decisions.h"

namespace tessera::capi {

class Runner {
 public:
  // Loads on its thread, so that the threads which that takes are its own, too, and folds batch norms (layers/fold.h). Throws
  // what `load` throws, and NumericError where a folded weight is NaN or Inf.
  Runner(const std::function<TrainedNetwork()>& load, std::int64_t threads);
  ~Runner();  // not in the child of a process that forked, where there is no such thread to join
  Runner(const Runner&) = delete;
  Runner& operator=(const Runner&) = delete;

  // Throws DeviceError in the child of a process that forked.
  void check_process() const;

  // All three are safe for several threads at once, are taken in their order, and throw what check_process() throws.
  // What the network says of `parts`, of its inputs, the first one in front; none of them is kept. f32, contiguous. Throws
  // ShapeError before anything is computed where the answer has another shape than `answer`, and what a forward throws. The
  // result shares no memory with `parts`.
  Tensor run(std::span<const NamedTensor> parts, const Shape& answer);
  Shape output_shape(const Shape& input);
  void set_threads(std::int64_t threads);  // 0: every processor of the process

  const std::vector<Input>& inputs() const noexcept { return network_.inputs; }
  const std::string& description() const noexcept { return description_; }  // JSON
  bool is_of_this_process() const noexcept;

 private:
  void on_thread(std::function<void()> work);  // and waits for it
  void serve(std::packaged_task<void()> loading, std::int64_t threads);

  TrainedNetwork network_;  // without a model where it could not be loaded
  std::string description_;
  DecisionMap decisions_;  // until its thread takes them
  const pid_t process_;
  std::mutex mutex_;
  std::condition_variable asked_;
  std::deque<std::packaged_task<void()>> waiting_;
  bool ending_ = false;
  std::thread thread_;
};

}  // namespace tessera::capi
