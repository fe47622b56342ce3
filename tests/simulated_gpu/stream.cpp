#include "tests/simulated_gpu/stream.h"

#include <sys/mman.h>

#include <cstddef>
#include <cstring>
#include <map>
#include <utility>

#include "tests/simulated_gpu/chip.h"

namespace tessera::simulated_gpu {
namespace {

struct Memory {
  std::map<std::uintptr_t, std::size_t> of_gpu, pinned;  // bytes by address
  std::size_t taken = 0;
  int open = 0;  // nesting depth of running work
};
Memory& memory() {
  static Memory& made = *new Memory;  // never destroyed: static objects may hold memory until after main
  return made;
}

bool lies_in(const std::map<std::uintptr_t, std::size_t>& ranges, const void* address) {
  const auto at = reinterpret_cast<std::uintptr_t>(address);
  const auto behind = ranges.upper_bound(at);
  if (behind == ranges.begin()) return false;
  const auto& [begin, bytes] = *std::prev(behind);
  return at - begin < bytes;
}

void protect_all(int protection) {
  for (const auto& [begin, bytes] : memory().of_gpu) {
    if (::mprotect(reinterpret_cast<void*>(begin), bytes, protection) != 0) fail("mprotect of the GPU's memory");
  }
}

// Makes the GPU's memory accessible to the running work.
class Opened {
 public:
  Opened() {
    if (memory().open++ == 0) protect_all(PROT_READ | PROT_WRITE);
  }
  ~Opened() {
    if (--memory().open == 0) protect_all(PROT_NONE);
  }
  Opened(const Opened&) = delete;
  Opened& operator=(const Opened&) = delete;
};

std::vector<std::weak_ptr<Queue>>& queues() {
  static auto& made = *new std::vector<std::weak_ptr<Queue>>;
  return made;
}

thread_local cudaError_t last_error = cudaSuccess;

std::map<const void*, std::size_t>& allowances() {
  static std::map<const void*, std::size_t> bytes;
  return bytes;
}

}  // namespace

std::recursive_mutex& gpu_mutex() {
  static std::recursive_mutex& made = *new std::recursive_mutex;
  return made;
}

std::shared_ptr<Queue> make_queue() {
  const std::lock_guard lock(gpu_mutex());
  auto made = std::make_shared<Queue>();
  queues().push_back(made);
  return made;
}

void put(cudaStream_t stream, Work work) {
  if (stream == nullptr) fail("the legacy stream is used");
  if (stream->recorded) return stream->recorded->nodes.push_back(std::move(work));
  stream->queue->work.push_back(std::move(work));
  ++stream->queue->put;
}

void run_until(Queue& queue, std::uint64_t position) {
  const Opened opened;
  while (queue.done < position) {
    const Work work = std::move(queue.work.front());
    queue.work.pop_front();
    ++queue.done;
    work();
  }
}

void run_all_streams() {
  for (const auto& held : queues()) {
    if (const auto queue = held.lock()) run_until(*queue, queue->put);
  }
}

void start(const Launch& launch, cudaStream_t stream, std::function<void()> thread) {
  const std::lock_guard lock(gpu_mutex());
  if (launch.shared > allowed_shared(launch.function)) {
    set_error(cudaErrorInvalidValue);
    return;
  }
  put(stream, [launch, thread = std::move(thread)] {
    // The kernel may have waited in a queue or a graph, and the allowance may have changed since its launch.
    if (launch.shared > allowed_shared(launch.function)) fail("a later launch took a kernel's shared memory away");
    run_kernel(launch, thread);
  });
}

void* take_memory(std::size_t bytes) {
  constexpr std::size_t kPage = 4096;
  const std::size_t whole = (bytes + kPage - 1) / kPage * kPage;
  if (memory().taken + whole > kChip.memory) return nullptr;
  void* const made = ::mmap(nullptr, whole, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (made == MAP_FAILED) return nullptr;
  std::memset(made, 0xff, whole);
  if (memory().open == 0) ::mprotect(made, whole, PROT_NONE);
  memory().of_gpu.emplace(reinterpret_cast<std::uintptr_t>(made), whole);
  memory().taken += whole;
  return made;
}

bool give_memory(void* address) {
  const auto found = memory().of_gpu.find(reinterpret_cast<std::uintptr_t>(address));
  if (found == memory().of_gpu.end()) return false;
  ::munmap(address, found->second);
  memory().taken -= found->second;
  memory().of_gpu.erase(found);
  return true;
}

std::size_t free_memory() { return kChip.memory - memory().taken; }

bool is_gpu_memory(const void* address) { return lies_in(memory().of_gpu, address); }
bool is_pinned(const void* address) { return lies_in(memory().pinned, address); }
void add_pinned(void* address, std::size_t bytes) { memory().pinned.emplace(reinterpret_cast<std::uintptr_t>(address), bytes); }
bool remove_pinned(void* address) { return memory().pinned.erase(reinterpret_cast<std::uintptr_t>(address)) == 1; }

cudaError_t set_error(cudaError_t status) {
  if (status != cudaSuccess) last_error = status;
  return status;
}
cudaError_t take_error() { return std::exchange(last_error, cudaSuccess); }

void allow_shared(const void* function, std::size_t bytes) { allowances()[function] = bytes; }
std::size_t allowed_shared(const void* function) {
  const auto found = allowances().find(function);
  return found == allowances().end() ? (std::size_t{48} << 10) - kStaticShared : found->second;
}

}  // namespace tessera::simulated_gpu
