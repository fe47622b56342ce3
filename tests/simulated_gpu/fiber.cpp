#include "tests/simulated_gpu/fiber.h"

#include <sys/mman.h>

#include <cstddef>

#include "tests/simulated_gpu/block.h"

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/common_interface_defs.h>
#endif

// Saves the callee-saved registers on the stack and the stack pointer in *from, and continues where `to` was saved. (swapcontext
// asks the system for the signal mask each time, which takes longer than everything else.)
extern "C" void tessera_switch_stack(void** from, void* to);
asm(R"(
.text
.type tessera_switch_stack, @function
tessera_switch_stack:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
.size tessera_switch_stack, .-tessera_switch_stack
)");

namespace tessera::simulated_gpu {
namespace {

constexpr std::size_t kStack = std::size_t{256} << 10;

// The context that resumes fibers.
struct Resumer {
  void* top = nullptr;
  void* fake_stack = nullptr;
  const void* stack = nullptr;
  std::size_t size = 0;
};
Resumer resumer;
Fiber* current_fiber = nullptr;

void begin_switch([[maybe_unused]] void** fake_stack, [[maybe_unused]] const void* stack, [[maybe_unused]] std::size_t size) {
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_start_switch_fiber(fake_stack, stack, size);
#endif
}

void end_switch([[maybe_unused]] void* fake_stack, [[maybe_unused]] const void** from, [[maybe_unused]] std::size_t* size) {
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_finish_switch_fiber(fake_stack, from, size);
#endif
}

}  // namespace

Fiber::Fiber(void (*body)())
    : body_(body), stack_(::mmap(nullptr, kStack, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)) {
  if (stack_ == MAP_FAILED) fail("no memory for the stacks of a block");
  // Six registers, the return address, and a word that makes the stack look as it does after a call.
  auto** const words = reinterpret_cast<void**>(static_cast<std::byte*>(stack_) + kStack) - 8;
  words[6] = reinterpret_cast<void*>(&Fiber::enter);
  top_ = words;
}

Fiber::~Fiber() { ::munmap(stack_, kStack); }

void Fiber::enter() {
  end_switch(nullptr, &resumer.stack, &resumer.size);
  current_fiber->body_();
}

void Fiber::resume() {
  current_fiber = this;
  begin_switch(&resumer.fake_stack, stack_, kStack);
  tessera_switch_stack(&resumer.top, top_);
  end_switch(resumer.fake_stack, nullptr, nullptr);
}

void Fiber::leave() {
  Fiber& fiber = *current_fiber;
  begin_switch(&fiber.fake_stack_, resumer.stack, resumer.size);
  tessera_switch_stack(&fiber.top_, resumer.top);
  end_switch(fiber.fake_stack_, &resumer.stack, &resumer.size);
}

Fiber& Fiber::running() { return *current_fiber; }

}  // namespace tessera::simulated_gpu
