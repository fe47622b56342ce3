#include "tests/simulated_gpu/block.h"

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <numeric>
#include <random>
#include <vector>

#include "tests/simulated_gpu/fiber.h"

namespace tessera::simulated_gpu {

Place place{};
Launch current{};

namespace {

constexpr std::size_t kWarp = 32;
constexpr std::size_t kExchanged = 64;

struct AsyncCopy {
  void* to;
  const void* from;
  int size, bytes, group;
};

enum class State { fresh, ready, at_barrier, at_exchange, ended };

struct Thread {
  State state = State::fresh;
  Fiber* fiber = nullptr;
  unsigned exchanges = 0;
  int groups = 0;
  std::vector<AsyncCopy> copies;
};

struct Warp {
  alignas(16) std::byte values[2][kWarp * kExchanged];
};

struct Block {
  std::vector<Thread> threads;
  std::vector<Warp> warps;
  std::vector<std::size_t> order;
  std::size_t next = 0;  // index in `order`
  std::size_t running = 0;
  const std::function<void()>* body = nullptr;
  std::vector<std::unique_ptr<Fiber>> fibers;
  std::vector<Fiber*> idle;
  std::byte* shared = nullptr;
  std::mt19937 random;
};
Block block;

Thread& me() { return block.threads[block.running]; }

void enter(std::size_t thread) {
  block.running = thread;
  const auto at = static_cast<unsigned>(thread);
  const dim3& size = current.threads;
  place.thread = uint3{at % size.x, at / size.x % size.y, at / size.x / size.y};
}

void wait_as(State state) {
  me().state = state;
  Fiber::leave();
}

// Runs the given thread, and then the threads after it in the order that have not begun, until none is left.
void run_threads() {
  Fiber& fiber = Fiber::running();
  for (;;) {
    me().state = State::ready;
    me().fiber = &fiber;
    (*block.body)();
    if (!me().copies.empty()) fail("a thread ended without a wait for its copies");
    me().state = State::ended;
    if (block.next < block.order.size() && block.threads[block.order[block.next]].state == State::fresh) {
      enter(block.order[block.next++]);
      continue;
    }
    block.idle.push_back(&fiber);
    Fiber::leave();
  }
}

Fiber& fresh_fiber() {
  if (!block.idle.empty()) {
    Fiber& fiber = *block.idle.back();
    block.idle.pop_back();
    return fiber;
  }
  return *block.fibers.emplace_back(std::make_unique<Fiber>(run_threads));
}

bool all_are(std::size_t begin, std::size_t end, State state) {
  return std::all_of(block.threads.begin() + static_cast<std::ptrdiff_t>(begin),
                     block.threads.begin() + static_cast<std::ptrdiff_t>(end), [&](const Thread& t) { return t.state == state; });
}

void release(std::size_t begin, std::size_t end) {
  for (std::size_t i = begin; i < end; ++i) block.threads[i].state = State::ready;
}

// Releases all threads if all are at the barrier, or each warp that is wholly at an exchange. Returns whether any was released.
bool release_waiting() {
  const std::size_t count = block.threads.size();
  if (all_are(0, count, State::at_barrier)) {
    release(0, count);
    return true;
  }
  bool any = false;
  for (std::size_t warp = 0; warp < count; warp += kWarp) {
    const std::size_t end = std::min(warp + kWarp, count);
    if (!all_are(warp, end, State::at_exchange)) continue;
    if (end - warp < kWarp) fail("an exchange in a warp of fewer than 32 threads");
    release(warp, end);
    any = true;
  }
  return any;
}

void run_block(const std::function<void()>& body) {
  const std::size_t count = std::size_t{current.threads.x} * current.threads.y * current.threads.z;
  block.body = &body;
  block.threads.assign(count, Thread());
  block.warps.resize((count + kWarp - 1) / kWarp);
  block.order.resize(count);
  std::iota(block.order.begin(), block.order.end(), std::size_t{0});
  for (;;) {
    std::shuffle(block.order.begin(), block.order.end(), block.random);
    block.next = 0;
    while (block.next < count) {
      const std::size_t thread = block.order[block.next++];
      const State state = block.threads[thread].state;
      if (state != State::fresh && state != State::ready) continue;
      enter(thread);
      (state == State::fresh ? fresh_fiber() : *me().fiber).resume();
    }
    if (all_are(0, count, State::ended)) return;
    if (!release_waiting()) fail("threads wait for others that have ended or wait elsewhere");
  }
}

void check_launch() {
  const dim3 &g = current.blocks, &b = current.threads;
  if (b.x == 0 || b.y == 0 || b.z == 0 || std::size_t{b.x} * b.y * b.z > 1024 || b.z > 64) fail("threads of a block");
  if (g.x == 0 || g.y == 0 || g.z == 0 || g.x > 0x7fffffffU || g.y > 65535 || g.z > 65535) fail("blocks of a grid");
}

void arrive(const AsyncCopy& copy) {
  std::memset(copy.to, 0, static_cast<std::size_t>(copy.size));
  std::memcpy(copy.to, copy.from, static_cast<std::size_t>(copy.bytes));
}

}  // namespace

void fail(const char* rule) {
  std::fprintf(stderr, "simulated GPU: %s\n  kernel %s\n  block %u %u %u of %u %u %u, thread %u %u %u of %u %u %u\n", rule,
               current.name, place.block.x, place.block.y, place.block.z, current.blocks.x, current.blocks.y, current.blocks.z,
               place.thread.x, place.thread.y, place.thread.z, current.threads.x, current.threads.y, current.threads.z);
  std::abort();
}

void run_kernel(const Launch& launch, const std::function<void()>& thread) {
  current = launch;
  check_launch();
  // Allocates exactly this size, so that AddressSanitizer sees an access beyond the end.
  std::byte* const shared = launch.shared > 0 ? static_cast<std::byte*>(std::aligned_alloc(16, launch.shared)) : nullptr;
  block.shared = shared;
  for (unsigned z = 0; z < launch.blocks.z; ++z) {
    for (unsigned y = 0; y < launch.blocks.y; ++y) {
      for (unsigned x = 0; x < launch.blocks.x; ++x) {
        place.block = uint3{x, y, z};
        if (shared != nullptr) std::memset(shared, 0xff, launch.shared);
        run_block(thread);
      }
    }
  }
  std::free(shared);
}

void barrier() { wait_as(State::at_barrier); }

int lane() { return static_cast<int>(block.running % kWarp); }

const void* exchange(const void* mine, std::size_t bytes) {
  if (bytes > kExchanged) fail("an exchange of more than 64 bytes");
  std::byte* const values = block.warps[block.running / kWarp].values[me().exchanges++ % 2];
  std::memcpy(values + static_cast<std::size_t>(lane()) * bytes, mine, bytes);
  wait_as(State::at_exchange);
  return values;
}

void* dynamic_shared() { return block.shared; }

void copy_async(void* to, const void* from, int size, int bytes) {
  const auto is_aligned = [&](const void* p) {
    return reinterpret_cast<std::uintptr_t>(p) % static_cast<std::uintptr_t>(size) == 0;
  };
  if (!is_aligned(to) || !is_aligned(from)) fail("an asynchronous copy that is not aligned to its size");
  if (bytes < 0 || bytes > size) fail("the bytes that an asynchronous copy reads");
  const AsyncCopy copy{to, from, size, bytes, me().groups};
  if (block.random() % 2 == 0)
    arrive(copy);
  else
    me().copies.push_back(copy);
}

void commit_copies() { ++me().groups; }

void wait_for_groups(int newer) {
  auto& copies = me().copies;
  const auto waited = [&](const AsyncCopy& copy) { return copy.group < me().groups - newer; };
  for (const AsyncCopy& copy : copies) {
    if (waited(copy)) arrive(copy);
  }
  std::erase_if(copies, waited);
}

void wait_for_copies() {
  for (const AsyncCopy& copy : me().copies) arrive(copy);
  me().copies.clear();
}

}  // namespace tessera::simulated_gpu
