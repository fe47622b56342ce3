#include "capi/runner.h"

#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <utility>

#include "core/device/constant_weights.h"
#include "core/support/error.h"
#include "layers/fold.h"
#include "layers/scores.h"
#include "train/run/environment.h"

namespace tessera::capi {
namespace {

// Signal handlers of the host program must run on its own threads. This thread, and the OpenMP threads that it starts, therefore
// block all signals except those of their own faults.
void leave_signals_to_others() {
  sigset_t blocked;
  sigfillset(&blocked);
  for (const int fault : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT}) sigdelset(&blocked, fault);
  pthread_sigmask(SIG_BLOCK, &blocked, nullptr);
}

}  // namespace

Runner::Runner(const std::function<TrainedNetwork()>& load, std::int64_t threads) : process_(::getpid()) {
  std::packaged_task<void()> loading([this, &load] {
    TrainedNetwork network = load();
    description_ = to_json(description_of(network));
    decisions_ = std::move(network.decisions);
    network.model = for_inference(*network.model);  // the description is of the trained form; runs use the form that was timed
    network_ = std::move(network);
  });
  std::future<void> loaded = loading.get_future();
  thread_ = std::thread([this, threads, task = std::move(loading)]() mutable { serve(std::move(task), threads); });
  try {
    loaded.get();
  } catch (...) {
    thread_.join();
    throw;
  }
}

Runner::~Runner() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  asked_.notify_one();
  thread_.join();
}

bool Runner::is_of_this_process() const noexcept { return ::getpid() == process_; }

void Runner::check_process() const {
  TESSERA_CHECK(is_of_this_process(), DeviceError, "the network was loaded in process ", process_, ", this is its child ",
                ::getpid(), "; a process that forks loads its networks after the fork");
}

Tensor Runner::run(std::span<const NamedTensor> parts, const Shape& answer) {
  Tensor scored;
  on_thread([&] {
    const Shape shape = network_.output_shape(parts.front().tensor.shape());
    TESSERA_CHECK(shape == answer, ShapeError, "output '", kOutputName, "' is ", answer, "; the network writes ", shape, " for '",
                  parts.front().name, "' ", parts.front().tensor.shape());
    scored = scores(*network_.model, parts, Context{}, network_.compute()).value().contiguous();
    for (const NamedTensor& part : parts) {  // if the network only views its input, the answer shares the input's storage
      if (scored.shares_storage(part.tensor)) scored = scored.clone();
      TESSERA_CHECK(part.tensor.sole_owner(), InternalError, "the network kept its input '", part.name, "'");
    }
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
  check_process();
  std::packaged_task<void()> task(std::move(work));
  std::future<void> done = task.get_future();
  {
    const std::lock_guard lock(mutex_);
    waiting_.push_back(std::move(task));
  }
  asked_.notify_one();
  done.get();
}

void Runner::serve(std::packaged_task<void()> loading, std::int64_t threads) {
  leave_signals_to_others();
  set_compute_threads(threads);
  loading();
  if (network_.model == nullptr) return;
  const NoGrad no_grad;
  const ThreadDecisions decisions(std::move(decisions_));
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
