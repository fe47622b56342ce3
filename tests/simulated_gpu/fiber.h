// Functions with stacks of their own that take turns on one thread of the host. AddressSanitizer is told of them.
#pragma once

namespace tessera::simulated_gpu {

class Fiber {
 public:
  // `body` never returns; it runs when the fiber is resumed for the first time.
  explicit Fiber(void (*body)());
  ~Fiber();
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;

  // Goes on where the fiber was left, until it leaves. Not from within a fiber.
  void resume();
  // From within the fiber: back to where it was resumed.
  static void leave();
  static Fiber& running();

 private:
  static void enter();

  void (*body_)();
  void* stack_;
  void* top_ = nullptr;  // of the stack, where it was left
  void* fake_stack_ = nullptr;  // AddressSanitizer's
};

}  // namespace tessera::simulated_gpu
