// One object of a kind for each GPU.
#pragma once

#include <map>
#include <mutex>

#include "core/cuda/runtime/context.h"

namespace tessera::cuda {

// make()'s answer on a device that is current; made on first use and never destroyed, since static objects may use it after main.
// `Kind` tells objects of one type apart.
template <class Kind, class Make>
auto per_device(Device device, const Make& make) -> decltype(make()) {
  static std::mutex& mutex = *new std::mutex;
  static auto& made = *new std::map<int, decltype(make())>;
  static_cast<void>(stream_of(device));  // makes it current
  const std::lock_guard lock(mutex);
  const auto found = made.find(device.index());
  return found != made.end() ? found->second : made.emplace(device.index(), make()).first->second;
}

}  // namespace tessera::cuda
