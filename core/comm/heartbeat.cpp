#include "core/comm/heartbeat.h"

#include <mpi.h>

#include <condition_variable>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

namespace tessera {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds kTurn{250};
constexpr std::chrono::seconds kBeat{1};
constexpr std::chrono::seconds kStopped{3};  // a longer turn means that this process itself was stopped

// A rank that is listened to. MPI writes to `beat`, so a Partner must not move.
struct Partner {
  int rank = 0;
  MPI_Request hears = MPI_REQUEST_NULL, tells = MPI_REQUEST_NULL;
  char beat = 0, own_beat = 0;
  Clock::time_point heard, told;
};

}  // namespace

class Heartbeat::Thread {
 public:
  explicit Thread(std::function<void(int rank)> silent) : silent_(std::move(silent)) {
    MPI_Comm_dup(MPI_COMM_WORLD, &ranks_);
    int rank = 0, size = 1;
    MPI_Comm_rank(ranks_, &rank);
    MPI_Comm_size(ranks_, &size);
    // If several ranks miss rank 0, rank 1 reports it first.
    limit_ = kSilence + (rank > 1 ? kBeat : Clock::duration::zero());
    const Clock::time_point now = Clock::now();
    partners_.resize(rank == 0 ? static_cast<std::size_t>(size) - 1 : 1);
    for (std::size_t i = 0; i < partners_.size(); ++i) {
      partners_[i].rank = rank == 0 ? static_cast<int>(i) + 1 : 0;
      partners_[i].heard = partners_[i].told = now;
      listen(partners_[i]);
    }
    thread_ = std::thread([this] { run(); });
  }

  ~Thread() {
    {
      const std::lock_guard lock(mutex_);
      ends_ = true;
    }
    wake_.notify_one();
    thread_.join();
    for (Partner& partner : partners_) {
      if (partner.hears != MPI_REQUEST_NULL) {
        MPI_Cancel(&partner.hears);
        MPI_Wait(&partner.hears, MPI_STATUS_IGNORE);
      }
      if (partner.tells != MPI_REQUEST_NULL) MPI_Request_free(&partner.tells);
    }
    MPI_Comm_free(&ranks_);
  }

 private:
  void run() {
    std::unique_lock lock(mutex_);
    Clock::time_point turn = Clock::now();
    while (!wake_.wait_for(lock, kTurn, [this] { return ends_; })) {
      const Clock::time_point now = Clock::now();
      const bool was_stopped = now - turn > kStopped;
      turn = now;
      for (Partner& partner : partners_) {
        if (was_stopped) partner.heard = now;
        hear(partner, now);
        tell(partner, now);
        if (now - partner.heard > limit_) silent_(partner.rank);
      }
    }
  }

  void listen(Partner& partner) { MPI_Irecv(&partner.beat, 1, MPI_BYTE, partner.rank, 0, ranks_, &partner.hears); }

  void hear(Partner& partner, Clock::time_point now) {
    while (partner.hears != MPI_REQUEST_NULL) {  // null once MPI does not listen any more
      int heard = 0;
      if (MPI_Test(&partner.hears, &heard, MPI_STATUS_IGNORE) != MPI_SUCCESS || heard == 0) return;
      partner.heard = now;
      listen(partner);
    }
  }

  void tell(Partner& partner, Clock::time_point now) {
    if (now - partner.told < kBeat) return;
    int sent = 1;  // whether the previous beat was sent
    if (partner.tells != MPI_REQUEST_NULL) MPI_Test(&partner.tells, &sent, MPI_STATUS_IGNORE);
    if (sent == 0) return;
    MPI_Isend(&partner.own_beat, 1, MPI_BYTE, partner.rank, 0, ranks_, &partner.tells);
    partner.told = now;
  }

  std::function<void(int rank)> silent_;
  MPI_Comm ranks_ = MPI_COMM_NULL;  // separate, so that no other message is mistaken for a beat
  Clock::duration limit_{};
  std::vector<Partner> partners_;
  std::mutex mutex_;
  std::condition_variable wake_;
  bool ends_ = false;
  std::thread thread_;
};

Heartbeat::Heartbeat(std::function<void(int rank)> silent) : thread_(std::make_unique<Thread>(std::move(silent))) {}

Heartbeat::~Heartbeat() = default;

}  // namespace tessera
