#include "core/comm/mpi_communicator.h"

#include <mpi.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstring>
#include <limits>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <thread>
#include <utility>

#include "core/comm/heartbeat.h"
#include "core/comm/pieces.h"
#include "core/support/error.h"
#include "core/support/log.h"

namespace tessera {
namespace {

constexpr std::size_t kPiece = std::size_t{1} << 30;  // bytes; MPI counts in int
constexpr std::size_t kCallText = 96;
constexpr int kFailureTag = 1;

void check_mpi(int code, const char* call) {
  if (code == MPI_SUCCESS) return;
  std::array<char, MPI_MAX_ERROR_STRING> text{};
  int length = 0;
  MPI_Error_string(code, text.data(), &length);
  throw Error(str(call, " failed: ", std::string_view(text.data(), static_cast<std::size_t>(length))));
}

// FNV-1a hash of a short text.
std::uint64_t hash_of(std::string_view text) {
  std::uint64_t hash = 0xcbf29ce484222325U;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3U;
  return hash;
}

// Failures that ranks report to rank 0. Any waiting thread of rank 0 may receive the report; every waiting thread throws it.
class Failures {
 public:
  Failures() {
    check_mpi(MPI_Comm_dup(MPI_COMM_WORLD, &ranks_), "MPI_Comm_dup");
    MPI_Comm_set_errhandler(ranks_, MPI_ERRORS_RETURN);
  }
  Failures(const Failures&) = delete;
  Failures& operator=(const Failures&) = delete;
  ~Failures() { MPI_Comm_free(&ranks_); }

  void tell(int exit_code, std::string_view why) {
    std::string told(1, static_cast<char>(exit_code));
    told += why;
    MPI_Send(told.data(), static_cast<int>(told.size()), MPI_BYTE, 0, kFailureTag, ranks_);
  }

  void hear() {
    const std::lock_guard lock(mutex_);
    if (!heard_) receive();
    if (heard_) throw RankFailed(*heard_);
  }

 private:
  void receive() {
    int there = 0;
    MPI_Status status;
    check_mpi(MPI_Iprobe(MPI_ANY_SOURCE, kFailureTag, ranks_, &there, &status), "MPI_Iprobe");
    if (there == 0) return;
    int length = 0;
    MPI_Get_count(&status, MPI_BYTE, &length);
    std::string told(static_cast<std::size_t>(length), '\0');
    check_mpi(MPI_Recv(told.data(), length, MPI_BYTE, status.MPI_SOURCE, kFailureTag, ranks_, MPI_STATUS_IGNORE), "MPI_Recv");
    heard_.emplace(told.front(), str("rank ", status.MPI_SOURCE, ": ", told.substr(1)));
  }

  MPI_Comm ranks_ = MPI_COMM_NULL;
  std::mutex mutex_;
  std::optional<RankFailed> heard_;
};

// How long a wait polls before it sleeps, and its longest sleep. Each sleep is a tenth of the time waited so far. A wait that
// hears of failures throws them, so it may end while MPI still uses the memory of the call.
struct Patience {
  std::chrono::nanoseconds busy, longest_sleep;
  bool hears = true;
};

// MPI's own wait keeps a core busy. Other ranks may have minutes of work that needs the core or that is being timed.
constexpr Patience kOfTheStep{std::chrono::microseconds(200), std::chrono::milliseconds(1)};
// For a communication thread that runs next to a thread computing on the same cores.
constexpr Patience kBeside{std::chrono::nanoseconds(0), std::chrono::microseconds(500)};
// During a transfer: MPI makes progress only inside its calls. Every rank has entered, even one that has failed since.
constexpr Patience kSendingBeside{std::chrono::nanoseconds(0), std::chrono::microseconds(20), false};

class MpiCommunicator : public Communicator {
 public:
  MpiCommunicator(MPI_Comm ranks, std::shared_ptr<Failures> failures, bool for_threads, bool is_beside)
      : ranks_(ranks), failures_(std::move(failures)), for_threads_(for_threads), is_beside_(is_beside) {
    MPI_Comm_set_errhandler(ranks_, MPI_ERRORS_RETURN);
    check_mpi(MPI_Comm_rank(ranks_, &rank_), "MPI_Comm_rank");
    check_mpi(MPI_Comm_size(ranks_, &size_), "MPI_Comm_size");
  }
  MpiCommunicator(const MpiCommunicator&) = delete;
  MpiCommunicator& operator=(const MpiCommunicator&) = delete;
  ~MpiCommunicator() override {
    if (is_beside_) MPI_Comm_free(&ranks_);
  }

  int rank() const noexcept override { return rank_; }
  int size() const noexcept override { return size_; }

  void all_reduce(const Tensor& values, std::string_view name) override {
    check_reducible(values);
    GpuSums* const sums = values.device().is_cuda() ? sums_on(values.device()) : nullptr;
    // Memory is taken first: a rank that runs out fails before others wait for it. The copy back to a GPU allocates later.
    const Tensor scratch = sums == nullptr ? Tensor() : sums->scratch_for(values);
    const Tensor host = sums == nullptr && !values.device().is_cpu() ? values.to(Device::cpu()) : values;
    std::vector<std::byte> pieces(sums == nullptr ? bytes_of_pieces(values) : 0);
    agree(str("all_reduce of ", describe(values), name.empty() ? "" : " ", name));
    TESSERA_CHECK(values.numel() <= std::numeric_limits<int>::max(), ShapeError, "all_reduce: values are ", describe(values),
                  "; MPI counts to 2^31");
    if (sums != nullptr) return sums->all_reduce(values, scratch);
    reduce_on_host(host, pieces);
    if (!values.device().is_cpu()) values.copy_from(host.to(values.device()));
  }

  void broadcast(std::string& bytes) override {
    agree("broadcast");
    std::uint64_t length = bytes.size();
    check_mpi(MPI_Bcast(&length, 1, MPI_UINT64_T, 0, ranks_), "MPI_Bcast");
    bytes.resize(length);
    agree("the bytes of a broadcast");  // every rank has the memory now
    for (std::size_t done = 0; done < length; done += kPiece) {
      const std::size_t count = std::min(kPiece, length - done);
      check_mpi(MPI_Bcast(bytes.data() + done, static_cast<int>(count), MPI_BYTE, 0, ranks_), "MPI_Bcast");
    }
  }

  std::vector<std::string> all_gather(std::string_view bytes) override {
    agree("all_gather");
    const std::uint64_t mine = bytes.size();
    std::vector<std::uint64_t> lengths(static_cast<std::size_t>(size_));
    check_mpi(MPI_Allgather(&mine, 1, MPI_UINT64_T, lengths.data(), 1, MPI_UINT64_T, ranks_), "MPI_Allgather");
    std::vector<int> counts, begins;
    std::size_t total = 0;
    for (const std::uint64_t length : lengths) {
      begins.push_back(static_cast<int>(total));
      counts.push_back(static_cast<int>(length));
      total += length;
      TESSERA_CHECK(total <= kPiece, InternalError, "all_gather: ", total, " bytes or more; at most ", kPiece);
    }
    std::string all(total, '\0');
    agree("the bytes of an all_gather");  // every rank has the memory now
    check_mpi(MPI_Allgatherv(bytes.data(), static_cast<int>(mine), MPI_BYTE, all.data(), counts.data(), begins.data(), MPI_BYTE,
                             ranks_),
              "MPI_Allgatherv");
    std::vector<std::string> parts;
    for (std::size_t r = 0; r < lengths.size(); ++r) parts.push_back(all.substr(static_cast<std::size_t>(begins[r]), lengths[r]));
    return parts;
  }

  std::uint64_t any(std::uint64_t flags) override {
    agree("any");
    std::uint64_t result = 0;
    check_mpi(MPI_Allreduce(&flags, &result, 1, MPI_UINT64_T, MPI_BOR, ranks_), "MPI_Allreduce");
    return result;
  }

  void barrier() override {
    agree("barrier");  // returns after every rank has entered
  }

  void watch(std::function<void(int rank)> silent) override {
    agree("watch");
    if (for_threads_) {
      heartbeat_ = std::make_unique<Heartbeat>(std::move(silent));
    } else if (rank_ == 0) {
      log_warning("this MPI serves one thread alone: a rank that hangs is not noticed, and the others wait for it");
    }
  }

  Communicator* beside() override {
    agree("beside");
    if (!for_threads_ || is_beside_) return nullptr;
    if (!beside_) {
      MPI_Comm copy = MPI_COMM_NULL;
      check_mpi(MPI_Comm_dup(ranks_, &copy), "MPI_Comm_dup");
      beside_ = std::make_unique<MpiCommunicator>(copy, failures_, for_threads_, true);
    }
    return beside_.get();
  }

  [[noreturn]] void fail(int exit_code, std::string_view why) override {
    failures_->tell(exit_code, why);
    for (;;) std::this_thread::sleep_for(std::chrono::seconds(1));
  }

  [[noreturn]] void end_all(int exit_code) override {
    MPI_Abort(MPI_COMM_WORLD, exit_code);
    std::abort();  // MPI_Abort does not return
  }

 protected:
  // Null if values are summed on the hosts.
  virtual GpuSums* sums_on(Device) { return nullptr; }

  void wait(MPI_Request& request, const char* call, const Patience& patience) const {
    using Clock = std::chrono::steady_clock;
    const Clock::time_point begin = Clock::now();
    while (true) {
      int done = 0;
      check_mpi(MPI_Test(&request, &done, MPI_STATUS_IGNORE), call);
      if (done != 0) return;
      const std::chrono::nanoseconds waited = Clock::now() - begin;
      if (waited <= patience.busy) continue;
      if (patience.hears && rank_ == 0) failures_->hear();
      std::this_thread::sleep_for(std::min(waited / 10, patience.longest_sleep));
    }
  }

  // Ends the heartbeat and the second communicator. Must run before MPI is finalised.
  void end_threads() {
    heartbeat_.reset();
    beside_.reset();
    failures_.reset();
  }

 private:
  // Every collective function first makes this one MPI call of fixed size, so that ranks that call different functions find out.
  // A rank waits for the others here. When it returns, all of them have entered.
  void agree(const std::string& call) {
    const std::uint64_t hash = hash_of(call);
    mine_ = {hash, ~hash};
    MPI_Request request = MPI_REQUEST_NULL;
    check_mpi(MPI_Iallreduce(mine_.data(), most_.data(), 2, MPI_UINT64_T, MPI_MAX, ranks_, &request), "MPI_Iallreduce");
    wait(request, "MPI_Iallreduce", is_beside_ ? kBeside : kOfTheStep);
    if (most_[0] == ~most_[1]) return;
    std::array<char, kCallText> text{};
    std::memcpy(text.data(), call.data(), std::min(call.size(), text.size() - 1));
    std::vector<std::array<char, kCallText>> all(static_cast<std::size_t>(size_));
    check_mpi(MPI_Allgather(text.data(), kCallText, MPI_BYTE, all.data(), kCallText, MPI_BYTE, ranks_), "MPI_Allgather");
    std::string message = "ranks do not do the same:";
    for (int r = 0; r < size_; ++r)
      message += str(r > 0 ? ", rank " : " rank ", r, ": ", all[static_cast<std::size_t>(r)].data());
    throw InternalError(message);
  }

  // Bytes of the pieces from all ranks for the elements that this rank sums.
  std::size_t bytes_of_pieces(const Tensor& values) const {
    const std::int64_t mine = begin_of_piece(values.numel(), rank_ + 1, size_) - begin_of_piece(values.numel(), rank_, size_);
    return static_cast<std::size_t>(mine * size_) * size_of(values.dtype());
  }

  void reduce_on_host(const Tensor& values, std::span<std::byte> pieces) const {
    const auto count = static_cast<std::size_t>(values.numel());
    if (values.dtype() == DType::f32) {
      reduce(std::span(values.data<float>(), count), reinterpret_cast<float*>(pieces.data()), MPI_FLOAT);
    } else {
      reduce(std::span(values.data<double>(), count), reinterpret_cast<double*>(pieces.data()), MPI_DOUBLE);
    }
  }

  template <class T>
  void reduce(std::span<T> values, T* pieces, MPI_Datatype type) const {
    const auto count = static_cast<std::int64_t>(values.size());
    const auto ranks = static_cast<std::size_t>(size_);
    std::vector<int> begins(ranks), counts(ranks);
    for (int r = 0; r < size_; ++r) {
      begins[static_cast<std::size_t>(r)] = static_cast<int>(begin_of_piece(count, r, size_));
      counts[static_cast<std::size_t>(r)] =
          static_cast<int>(begin_of_piece(count, r + 1, size_)) - begins[static_cast<std::size_t>(r)];
    }
    const int mine = counts[static_cast<std::size_t>(rank_)];
    const auto width = static_cast<std::size_t>(mine);
    std::vector<int> piece_begins(ranks), piece_counts(ranks, mine);
    for (std::size_t r = 0; r < ranks; ++r) piece_begins[r] = mine * static_cast<int>(r);
    MPI_Request request = MPI_REQUEST_NULL;
    check_mpi(MPI_Ialltoallv(values.data(), counts.data(), begins.data(), type, pieces, piece_counts.data(), piece_begins.data(),
                             type, ranks_, &request),
              "MPI_Ialltoallv");
    finish(request, "MPI_Ialltoallv");
    for (std::size_t r = 1; r < ranks; ++r) {
      for (std::size_t i = 0; i < width; ++i) pieces[i] += pieces[r * width + i];
    }
    check_mpi(MPI_Iallgatherv(pieces, mine, type, values.data(), counts.data(), begins.data(), type, ranks_, &request),
              "MPI_Iallgatherv");
    finish(request, "MPI_Iallgatherv");
  }

  // All ranks have entered, so the wait lasts no longer than the transfer.
  void finish(MPI_Request& request, const char* call) const {
    if (is_beside_) return wait(request, call, kSendingBeside);
    check_mpi(MPI_Wait(&request, MPI_STATUS_IGNORE), call);
  }

  MPI_Comm ranks_;
  int rank_ = 0;
  int size_ = 1;
  std::shared_ptr<Failures> failures_;
  bool for_threads_;
  bool is_beside_;
  std::array<std::uint64_t, 2> mine_{}, most_{};  // not locals of agree(): MPI may still write to them after a wait that throws
  std::unique_ptr<Heartbeat> heartbeat_;
  std::unique_ptr<MpiCommunicator> beside_;
};

// The communicator of all processes. Its destructor finalises MPI.
class MpiProcesses final : public MpiCommunicator {
 public:
  MpiProcesses(bool for_threads, MakeGpuSums make)
      : MpiCommunicator(MPI_COMM_WORLD, std::make_shared<Failures>(), for_threads, /*is_beside=*/false), make_(std::move(make)) {}
  ~MpiProcesses() override {
    gpu_sums_.reset();
    MPI_Request all_here = MPI_REQUEST_NULL;
    MPI_Ibarrier(MPI_COMM_WORLD, &all_here);
    try {
      wait(all_here, "MPI_Ibarrier", kOfTheStep);
    } catch (const RankFailed& failed) {
      MPI_Abort(MPI_COMM_WORLD, failed.exit_code());
    } catch (const Error&) {  // MPI_Finalize waits for the others by itself
    }
    end_threads();
    MPI_Finalize();
  }

 private:
  GpuSums* sums_on(Device gpu) override {
    if (const MakeGpuSums make = std::exchange(make_, {})) gpu_sums_ = make(*this, gpu);
    return gpu_sums_.get();
  }

  MakeGpuSums make_;  // empty after the first call
  std::unique_ptr<GpuSums> gpu_sums_;
};

}  // namespace

std::unique_ptr<Communicator> mpi_communicator(MakeGpuSums make) {
  int provided = 0;
  check_mpi(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_MULTIPLE, &provided), "MPI_Init_thread");
  TESSERA_CHECK(provided >= MPI_THREAD_FUNNELED, Error, "MPI_Init_thread: this MPI library does not go with threads");
  return std::make_unique<MpiProcesses>(provided == MPI_THREAD_MULTIPLE, std::move(make));
}

}  // namespace tessera
