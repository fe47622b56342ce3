// Handles of the simulated libraries: objects that are made and destroyed by functions in C.
#pragma once

namespace tessera::simulated_gpu {

// 0 is the success of each library.
template <class Status, class Object>
Status make(Object** made) {
  *made = new Object{};
  return Status{};
}

template <class Status, class Object>
Status destroy(Object* object) {
  delete object;
  return Status{};
}

}  // namespace tessera::simulated_gpu
