#include "core/comm/background_sums.h"

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <exception>
#include <mutex>
#include <thread>
#include <utility>

namespace tessera {

// Its thread holds it too, so it outlives a BackgroundSums that could not finish.
class BackgroundSums::Thread {
 public:
  explicit Thread(Communicator& ranks) : ranks_(ranks) {}

  static void begin(const std::shared_ptr<Thread>& self) {
    self->thread_ = std::thread([self] { self->run(); });
  }

  void sum(Bucket bucket) {
    {
      const std::lock_guard lock(mutex_);
      buckets_.push_back(std::move(bucket));
    }
    changed_.notify_all();
  }

  void finish() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return buckets_.empty() || failed_; });
    if (failed_) std::rethrow_exception(failed_);
  }

  void end() {
    bool idle = false;
    {
      const std::lock_guard lock(mutex_);
      ends_ = true;
      idle = buckets_.empty() || failed_;
    }
    changed_.notify_all();
    if (idle) {
      thread_.join();
    } else {
      thread_.detach();
    }
  }

 private:
  // A bucket leaves the queue after it is summed.
  void run() {
    std::unique_lock lock(mutex_);
    for (;;) {
      changed_.wait(lock, [this] { return ends_ || !buckets_.empty(); });
      if (buckets_.empty() || ends_) return;
      const Bucket& bucket = buckets_.front();  // push_back() does not move the first element of a deque
      lock.unlock();
      std::exception_ptr failed;
      try {
        bucket.all_reduce(ranks_);
      } catch (...) {
        failed = std::current_exception();
      }
      lock.lock();
      failed_ = failed;
      if (!failed) buckets_.pop_front();
      changed_.notify_all();
      if (failed) return;
    }
  }

  Communicator& ranks_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Bucket> buckets_;
  std::exception_ptr failed_;
  bool ends_ = false;
  std::thread thread_;
};

BackgroundSums::BackgroundSums(Communicator& ranks, std::size_t bytes) : ranks_(ranks), bytes_(bytes), bucket_(bytes) {
  Communicator* const beside = ranks.beside();
  if (beside == nullptr) return;
  thread_ = std::make_shared<Thread>(*beside);
  Thread::begin(thread_);
}

BackgroundSums::~BackgroundSums() {
  if (thread_) thread_->end();
}

void BackgroundSums::add(const Tensor& tensor, std::string_view name) {
  check_reducible(tensor);
  if (first_ && bucket_.empty()) {
    const std::size_t least = std::min(kFirstBucketBytes, bytes_);
    bucket_ = Bucket(std::clamp(tensor.bytes(), least, bytes_));
  }
  if (!bucket_.takes(tensor)) {
    sum(std::exchange(bucket_, Bucket(bytes_)));
    first_ = false;
  }
  bucket_.add(tensor, name);
}

void BackgroundSums::sum(Bucket bucket) {
  if (bucket.empty()) return;
  if (thread_ && !bucket.is_on_gpu()) {
    thread_->sum(std::move(bucket));
  } else {
    bucket.all_reduce(ranks_);
  }
}

void BackgroundSums::finish() {
  sum(std::exchange(bucket_, Bucket(bytes_)));
  first_ = true;
  if (thread_) thread_->finish();
}

}  // namespace tessera
