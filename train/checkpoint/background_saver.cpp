#include "train/checkpoint/background_saver.h"

#include <signal.h>

#include <chrono>
#include <utility>

#include "core/support/error.h"
#include "core/support/log.h"

namespace tessera {
namespace {

std::map<std::string, State> copy(const std::map<std::string, State>& parts) try {
  std::map<std::string, State> copies;
  for (const auto& [name, state] : parts) {
    State& copied = copies[name];
    copied.meta = state.meta;
    for (const auto& [path, tensor] : state.tensors) copied.tensors[path] = tensor.clone();
  }
  return copies;
} catch (const OutOfMemoryError& error) {
  throw error.at("copy for a checkpoint (checkpoint.async=false saves without one)");
}

// Blocks all signals on this thread, and on threads that it starts, during the scope.
class SignalsBlocked {
 public:
  SignalsBlocked() {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~SignalsBlocked() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  SignalsBlocked(const SignalsBlocked&) = delete;
  SignalsBlocked& operator=(const SignalsBlocked&) = delete;

 private:
  sigset_t before_{};
};

// Called from a destructor: a log sink that throws must not end the process.
void warn(const char* message) noexcept {
  try {
    log_warning(message);
  } catch (...) {
  }
}

}  // namespace

BackgroundSaver::~BackgroundSaver() {
  try {
    wait();
  } catch (const std::exception& error) {
    warn(error.what());
  } catch (...) {
    warn("checkpoint: the save under way failed");
  }
}

void BackgroundSaver::start(std::int64_t step, const std::map<std::string, State>& parts, const Value& manifest_extra,
                            std::function<void()> then) {
  TESSERA_CHECK(!busy(), InternalError, "checkpoint: save of step ", step, " while another is under way");
  const SignalsBlocked blocked;  // the new thread inherits the mask: a signal must not interrupt its fsync
  saving_ = std::async(std::launch::async,
                       [&store = store_, step, copies = copy(parts), extra = manifest_extra, then = std::move(then)] {
                         SaveResult result = store.save(step, copies, extra);
                         if (then) then();
                         return result;
                       });
}

std::optional<SaveResult> BackgroundSaver::poll() {
  if (!busy() || saving_.wait_for(std::chrono::seconds(0)) != std::future_status::ready) return {};
  return saving_.get();
}

std::optional<SaveResult> BackgroundSaver::wait() {
  if (!busy()) return {};
  return saving_.get();
}

}  // namespace tessera
