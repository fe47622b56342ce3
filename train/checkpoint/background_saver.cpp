#include "train/checkpoint/background_saver.h"

#include <chrono>
#include <utility>

#include "core/error.h"
#include "core/log.h"

namespace tessera {
namespace {

std::map<std::string, State> copy(const std::map<std::string, State>& parts) {
  std::map<std::string, State> copies;
  for (const auto& [name, state] : parts) {
    State& copied = copies[name];
    copied.meta = state.meta;
    for (const auto& [path, tensor] : state.tensors) copied.tensors[path] = tensor.clone();
  }
  return copies;
}

}  // namespace

BackgroundSaver::~BackgroundSaver() {
  try {
    wait();
  } catch (const std::exception& error) {
    log_warning(error.what());
  }
}

void BackgroundSaver::start(std::int64_t step, const std::map<std::string, State>& parts, const Value& manifest_extra,
                            std::function<void()> then) {
  TESSERA_CHECK(!busy(), InternalError, "checkpoint: save of step ", step, " while another is under way");
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
