#include "capi/runner.h"

#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <utility>

#include "core/device/constant_weights.h"
#include "core/support/error.h"
#include "layers/scores.h"
#include "train/run/environment.h"

namespace tessera::capi {
namespace {

// Handlers of the program's are to run on threads of its own: this one, and those of OpenMP that it starts, take no signals but
// those of their own faults.
void leave_signals_to_others() {
  sigset_t blocked;
  sigfillset(&blocked);
  for (const int fault : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT}) sigdelset(&blocked, fault);
  pthread_sigmask(SIG_BLOCK, &blocked, nullptr);
}

}  // namespace

Runner::Runner(TrainedNetwork network, std::int64_t threads)
    : network_(std::move(network)), process_(::getpid()), thread_([this, threads] { serve(threads); }) {}

Runner::~Runner() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  asked_.notify_one();
  thread_.join();
}

bool Runner::is_of_this_process() const noexcept { return ::getpid() == process_; }

Tensor Runner::run(std::span<const NamedTensor> parts, const Shape& answer) {
  Tensor scored;
  on_thread([&] {
    const Shape shape = network_.output_shape(parts.front().tensor.shape());
    TESSERA_CHECK(shape == answer, ShapeError, "output '", kOutputName, "' is ", answer, "; the network writes ", shape, " for '",
                  parts.front().name, "' ", parts.front().tensor.shape());
    scored = scores(*network_.model, parts, Context{}, network_.compute()).value().contiguous();
  });
  return scored;
}

Shape Runner::output_shape(const Shape& input) {
  Shape shape;
  on_thread([&] { shape = network_.output_shape(input); });
  return shape;
}

void Runner::set_threads(std::int64_t threads) {
  on_thread([threads] { set_compute_threads(threads); });
}

void Runner::on_thread(std::function<void()> work) {
  TESSERA_CHECK(is_of_this_process(), DeviceError, "the network was loaded in process ", process_, ", this is its child ",
                ::getpid(), "; a process that forks loads its networks after the fork");
  std::packaged_task<void()> task(std::move(work));
  std::future<void> done = task.get_future();
  {
    const std::lock_guard lock(mutex_);
    waiting_.push_back(std::move(task));
  }
  asked_.notify_one();
  done.get();
}

void Runner::serve(std::int64_t threads) {
  leave_signals_to_others();
  set_compute_threads(threads);
  const NoGrad no_grad;
  const ThreadDecisions decisions(std::move(network_.decisions));
  const ConstantWeights constant;
  for (;;) {
    std::unique_lock lock(mutex_);
    asked_.wait(lock, [this] { return ending_ || !waiting_.empty(); });
    if (waiting_.empty()) return;
    std::packaged_task<void()> task = std::move(waiting_.front());
    waiting_.pop_front();
    lock.unlock();
    task();
  }
}

}  // namespace tessera::capi
