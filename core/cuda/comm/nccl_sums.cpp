#include "core/cuda/comm/nccl_sums.h"

#include <nccl.h>

#include <array>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <mutex>
#include <optional>
#include <set>
#include <thread>
#include <utility>
#include <vector>

#include "core/autograd/accumulate.h"
#include "core/comm/pieces.h"
#include "core/comm/stuck.h"
#include "core/cuda/runtime/context.h"
#include "core/cuda/runtime/error.h"
#include "core/cuda/runtime/handle.h"
#include "core/support/error.h"
#include "core/support/host.h"
#include "core/support/log.h"

namespace tessera {
namespace {

using Clock = std::chrono::steady_clock;
using Failed = std::function<void(const std::string& why)>;
using Event = cuda::UniqueHandle<cudaEvent_t, cudaEventDestroy>;

constexpr std::chrono::seconds kLongest{60};  // limit for a call in progress: all ranks are already there
constexpr std::chrono::seconds kStuck{300};  // limit for one sum on the GPU: another rank may still be in its backward pass
constexpr std::chrono::seconds kWatched{1};
constexpr std::chrono::seconds kStopped{3};  // a longer gap between two turns of the watcher means that the process was suspended
constexpr std::size_t kBusId = 32;

std::string said(ncclResult_t status, ncclComm_t comm) {
  const char* const last = ncclGetLastError(comm);
  return str("NCCL: ", ncclGetErrorString(status), last == nullptr || *last == '\0' ? "" : ": ", last == nullptr ? "" : last);
}

void check(ncclResult_t status, const char* call, ncclComm_t comm = nullptr) {
  if (status == ncclSuccess) return;
  cuda::forget_error();
  throw DeviceError(str(call, ": ", said(status, comm)));
}

// The same GPU has the same text in every process.
std::string name_of(Device gpu) {
  static_cast<void>(cuda::stream_of(gpu));
  std::array<char, kBusId> bus{};
  cuda::check(cudaDeviceGetPCIBusId(bus.data(), static_cast<int>(bus.size()), gpu.index()), "cudaDeviceGetPCIBusId");
  return str(host_name(), ' ', bus.data());
}

// A sum in the stream, between two events.
struct QueuedSum {
  Event begin, end;
};

QueuedSum make_sum() {
  const auto make_event = [] {
    cudaEvent_t event = nullptr;
    cuda::check(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), "NCCL: event");
    return Event(event);
  };
  return {make_event(), make_event()};
}

// Whether the GPU has reached the event. Errors are reported where the stream is waited for.
bool is_behind(const Event& event) {
  const bool waits = cudaEventQuery(event.get()) == cudaErrorNotReady;
  cuda::forget_error();
  return !waits;
}

class NcclSums final : public GpuSums {
 public:
  NcclSums(const Communicator& ranks, Device gpu, const ncclUniqueId& id, Failed failed)
      : rank_(ranks.rank()), size_(ranks.size()), stream_(cuda::stream_of(gpu)), failed_(std::move(failed)) {
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.blocking = 0;  // otherwise a rank that does not come would block this one for ever
    try {
      settle(ncclCommInitRankConfig(&comm_, size_, id, rank_, &config), "ncclCommInitRankConfig");
    } catch (...) {
      static_cast<void>(ncclCommAbort(comm_));
      throw;
    }
    watcher_ = std::thread([this] { watch(); });
  }
  ~NcclSums() override {
    {
      const std::lock_guard lock(mutex_);
      ends_ = true;
    }
    changed_.notify_all();
    watcher_.join();
    try {
      settle(ncclCommFinalize(comm_), "ncclCommFinalize");
    } catch (const Error& error) {
      log_warning(error.what());
      static_cast<void>(ncclCommAbort(comm_));
      return;
    }
    static_cast<void>(ncclCommDestroy(comm_));
  }
  NcclSums(const NcclSums&) = delete;
  NcclSums& operator=(const NcclSums&) = delete;

  // Holds this rank's piece of the values of every rank.
  Tensor scratch_for(const Tensor& values) const override {
    const std::int64_t count = values.numel();
    const std::int64_t width = begin_of_piece(count, rank_ + 1, size_) - begin_of_piece(count, rank_, size_);
    return Tensor::empty({width * size_}, values.dtype(), values.device());
  }

  void all_reduce(const Tensor& values, const Tensor& scratch) override {
    QueuedSum sum = unused_sum();
    cuda::check(cudaEventRecord(sum.begin.get(), stream_), "NCCL: event");
    exchange_pieces(values, scratch);
    cuda::check(cudaEventRecord(sum.end.get(), stream_), "NCCL: event");
    const std::lock_guard lock(mutex_);
    queued_.push_back(std::move(sum));
  }

 private:
  static ncclDataType_t type_of(const Tensor& values) { return values.dtype() == DType::f64 ? ncclFloat64 : ncclFloat32; }

  QueuedSum unused_sum() {
    const std::lock_guard lock(mutex_);
    if (unused_.empty()) return make_sum();
    QueuedSum sum = std::move(unused_.back());
    unused_.pop_back();
    return sum;
  }

  void exchange_pieces(const Tensor& values, const Tensor& scratch) const {
    const Tensor flat = values.reshape({values.numel()});
    const auto piece = [&](int rank) {
      return flat.slice(0, begin_of_piece(flat.numel(), rank, size_), begin_of_piece(flat.numel(), rank + 1, size_));
    };
    const std::int64_t width = piece(rank_).numel();
    const auto of_rank = [&](int rank) { return scratch.slice(0, width * rank, width * (rank + 1)); };
    exchange([&](int rank) {
      send(piece(rank), rank);
      receive(of_rank(rank), rank);
    });
    for (int rank = 1; rank < size_ && width > 0; ++rank) accumulate(of_rank(0), of_rank(rank));
    exchange([&](int rank) {
      send(of_rank(0), rank);
      receive(piece(rank), rank);
    });
  }

  // Calls with_rank(rank) for every rank in one NCCL group, so that all transfers run at once.
  template <class WithRank>
  void exchange(const WithRank& with_rank) const {
    try {
      check(ncclGroupStart(), "ncclGroupStart", comm_);
      for (int rank = 0; rank < size_; ++rank) with_rank(rank);
      settle(ncclGroupEnd(), "ncclGroupEnd");
    } catch (const Error& error) {
      failed_(error.what());  // reported first: the GPU may wait for ranks that do not come, and freeing memory waits for the GPU
      throw;
    }
  }
  void send(const Tensor& values, int rank) const {
    if (values.numel() == 0) return;
    check(ncclSend(values.raw(), static_cast<std::size_t>(values.numel()), type_of(values), rank, comm_, stream_), "ncclSend",
          comm_);
  }
  void receive(const Tensor& values, int rank) const {
    if (values.numel() == 0) return;
    check(ncclRecv(values.raw(), static_cast<std::size_t>(values.numel()), type_of(values), rank, comm_, stream_), "ncclRecv",
          comm_);
  }

  ncclResult_t state() const {
    ncclResult_t state = ncclSuccess;
    const ncclResult_t status = ncclCommGetAsyncError(comm_, &state);
    return status == ncclSuccess ? state : status;
  }

  // Waits for a call to complete that may still be in progress when it returns.
  void settle(ncclResult_t status, const char* call) const {
    const Clock::time_point begin = Clock::now();
    while (status == ncclInProgress) {
      TESSERA_CHECK(Clock::now() - begin < kLongest, DeviceError, call, ": NCCL is not done after ", kLongest.count(),
                    " seconds");
      std::this_thread::sleep_for(std::chrono::microseconds(50));
      status = state();
    }
    check(status, call, comm_);
  }

  // The number of the sum that the GPU is working on, or nothing.
  std::optional<std::uint64_t> sum_at_work() {
    for (; !queued_.empty() && is_behind(queued_.front().end); ++ended_) {
      unused_.push_back(std::move(queued_.front()));
      queued_.pop_front();
    }
    if (queued_.empty() || !is_behind(queued_.front().begin)) return std::nullopt;
    return ended_;
  }

  // NCCL's own errors are checked first: a query to the GPU may block while a sum is stuck.
  void watch() {
    StuckWatch progress(kStuck, kStopped);
    std::unique_lock lock(mutex_);
    while (!changed_.wait_for(lock, kWatched, [this] { return ends_; })) {
      std::string why;
      if (const ncclResult_t now = state(); now != ncclSuccess && now != ncclInProgress) {
        why = said(now, comm_);
      } else if (progress.is_stuck(sum_at_work(), Clock::now())) {
        why = str("NCCL: a sum has not ended for ", kStuck.count(), " seconds");
      }
      if (why.empty()) continue;
      lock.unlock();
      failed_(why);
      lock.lock();
    }
  }

  int rank_, size_;
  cudaStream_t stream_;
  Failed failed_;
  ncclComm_t comm_ = nullptr;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool ends_ = false;
  std::deque<QueuedSum> queued_;
  std::uint64_t ended_ = 0;
  std::vector<QueuedSum> unused_;
  std::thread watcher_;
};

std::unique_ptr<GpuSums> made(Communicator& ranks, Device gpu, const Failed& failed) {
  const std::vector<std::string> gpus = ranks.all_gather(name_of(gpu));
  if (std::set<std::string>(gpus.begin(), gpus.end()).size() < gpus.size()) {
    if (ranks.rank() == 0) log_warning("ranks share a GPU, which NCCL does not serve: their sums go through the host");
    return nullptr;
  }
  ncclUniqueId id{};
  if (ranks.rank() == 0) check(ncclGetUniqueId(&id), "ncclGetUniqueId");
  std::string bytes(reinterpret_cast<const char*>(&id), sizeof id);
  ranks.broadcast(bytes);
  std::memcpy(&id, bytes.data(), sizeof id);
  log(LogLevel::debug, str("ranks: sums on ", gpu, " by NCCL"));
  return std::make_unique<NcclSums>(ranks, gpu, id, failed);
}

}  // namespace

MakeGpuSums nccl_sums(Failed failed) {
  return [failed = std::move(failed)](Communicator& ranks, Device gpu) { return made(ranks, gpu, failed); };
}

}  // namespace tessera
