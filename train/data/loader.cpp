#include "train/data/loader.h"

#include <algorithm>
#include <array>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "core/rng.h"
#include "core/support/error.h"
#include "train/data/device_feed.h"

namespace tessera {

LoaderOptions evaluation_options(std::int64_t batch, int threads, Device device) {
  LoaderOptions options;
  options.batch = batch;
  options.shuffle = false;
  options.drop_last = false;
  options.augment = false;
  options.threads = threads;
  options.device = device;
  return options;
}

// Makes the batch at any position; safe to call from several threads.
class Loader::Assembler {
 public:
  Assembler(Subset subset, LoaderOptions options) : subset_(std::move(subset)), options_(std::move(options)) {
    TESSERA_CHECK(options_.batch >= 1, ConfigError, "data.batch is ", options_.batch, "; must be at least 1");
    TESSERA_CHECK(!options_.drop_last || batches_per_epoch() >= 1, ConfigError, "data.batch is ", options_.batch, " but ",
                  subset_.dataset->name(), " has ", subset_.size(), " samples to draw from; drop_last leaves no batch");
    const std::string unequal = why_no_equal_shares(subset_.size(), options_);
    TESSERA_CHECK(unequal.empty(), ConfigError, unequal);
  }

  std::int64_t batches_per_epoch() const {
    return options_.drop_last ? subset_.size() / options_.batch : (subset_.size() + options_.batch - 1) / options_.batch;
  }

  // Tensors of the largest batch, or of this rank's share of it.
  std::vector<StagedTensor> layout() const {
    std::vector<StagedTensor> layout;
    for (const Field& field : subset_.dataset->fields())
      layout.push_back({batch_shape(field.shape, options_.batch / options_.shares), field.dtype});
    return layout;
  }

  Batch assemble(std::int64_t position) const {
    const std::int64_t epoch = position / batches_per_epoch();
    const std::int64_t first_of_batch = position % batches_per_epoch() * options_.batch;
    const std::int64_t share = std::min(options_.batch, subset_.size() - first_of_batch) / options_.shares;
    const std::int64_t first = first_of_batch + options_.share * share;
    const auto order = order_of(epoch);
    std::vector<std::int64_t> samples(static_cast<std::size_t>(share));
    for (std::size_t i = 0; i < samples.size(); ++i) {
      const std::size_t at = static_cast<std::size_t>(first) + i;
      samples[i] = subset_.indices[order ? static_cast<std::size_t>((*order)[at]) : at];
    }
    Batch batch = Batch::empty(subset_.dataset->fields(), static_cast<std::int64_t>(samples.size()));
    subset_.dataset->assemble(samples, options_.augment ? std::optional(epoch) : std::nullopt, batch);
    return batch;
  }

 private:
  using Order = std::vector<std::int64_t>;

  // The shuffled order of an epoch, null for evaluation. Prefetching straddles two epochs, so two orders are kept.
  std::shared_ptr<const Order> order_of(std::int64_t epoch) const {
    if (!options_.shuffle) return nullptr;
    const std::lock_guard lock(orders_mutex_);
    auto& [cached_epoch, order] = orders_[static_cast<std::size_t>(epoch % 2)];
    if (!order || cached_epoch != epoch) {
      order = std::make_shared<const Order>(
          random_permutation(RngStream(options_.seed, "data", "order"), static_cast<std::uint64_t>(epoch), subset_.size()));
      cached_epoch = epoch;
    }
    return order;
  }

  Subset subset_;
  LoaderOptions options_;
  mutable std::mutex orders_mutex_;
  mutable std::array<std::pair<std::int64_t, std::shared_ptr<const Order>>, 2> orders_;
};

// A ring of batches: position p is in slot p % size. Workers claim positions in order, at most one ring ahead of the caller.
// A seek starts a new generation. Batches that were claimed in an older generation are dropped.
class Loader::Prefetcher {
 public:
  Prefetcher(const Assembler& assembler, int threads, int ring) : assembler_(assembler), slots_(static_cast<std::size_t>(ring)) {
    try {
      for (int i = 0; i < threads; ++i) workers_.emplace_back([this] { work(); });
    } catch (...) {
      stop();
      throw;
    }
  }
  ~Prefetcher() { stop(); }

  Batch take() {
    std::unique_lock lock(mutex_);
    Slot& slot = slot_of(head_);
    ready_.wait(lock, [&] { return slot.filled; });
    if (slot.failure) std::rethrow_exception(slot.failure);
    Batch batch = std::move(slot.batch);
    slot = {};
    ++head_;
    lock.unlock();
    room_.notify_one();
    return batch;
  }

  void seek(std::int64_t position) {
    {
      const std::lock_guard lock(mutex_);
      ++generation_;
      head_ = position;
      claimed_ = position;
      for (Slot& slot : slots_) slot = {};
    }
    room_.notify_all();
  }

 private:
  struct Slot {
    Batch batch;
    std::exception_ptr failure;
    bool filled = false;
  };

  Slot& slot_of(std::int64_t position) { return slots_[static_cast<std::size_t>(position) % slots_.size()]; }

  void work() {
    std::unique_lock lock(mutex_);
    while (true) {
      room_.wait(lock, [&] { return stopping_ || claimed_ < head_ + static_cast<std::int64_t>(slots_.size()); });
      if (stopping_) return;
      const std::int64_t position = claimed_++;
      const std::uint64_t generation = generation_;
      lock.unlock();
      Slot made = make(position);
      lock.lock();
      if (generation == generation_) {
        slot_of(position) = std::move(made);
        ready_.notify_one();
      }
    }
  }

  Slot make(std::int64_t position) const {
    Slot slot;
    slot.filled = true;
    try {
      slot.batch = assembler_.assemble(position);
    } catch (...) {
      slot.failure = std::current_exception();
    }
    return slot;
  }

  void stop() noexcept {
    {
      const std::lock_guard lock(mutex_);
      stopping_ = true;
    }
    room_.notify_all();
    for (std::thread& worker : workers_) worker.join();
  }

  const Assembler& assembler_;
  std::mutex mutex_;
  std::condition_variable ready_;
  std::condition_variable room_;
  std::vector<Slot> slots_;
  std::int64_t head_ = 0;  // the next position that the caller takes
  std::int64_t claimed_ = 0;  // the next position that a worker claims
  std::uint64_t generation_ = 0;
  bool stopping_ = false;
  std::vector<std::thread> workers_;
};

std::string why_no_equal_shares(std::int64_t samples, const LoaderOptions& options) {
  if (options.batch % options.shares != 0) {
    return str("data.batch is ", options.batch, "; ", options.shares, " ranks cannot share it equally");
  }
  const std::int64_t rest = options.drop_last ? 0 : samples % options.batch;
  if (rest % options.shares == 0) return "";
  return str("data.drop_last is false, and the last batch of an epoch has ", rest, " samples; ", options.shares,
             " ranks cannot share it equally");
}

Loader::Loader(Subset subset, LoaderOptions options) {
  const int threads = options.threads;
  const int ring = options.prefetch;
  const Device device = options.device;
  TESSERA_CHECK(threads >= 0 && ring >= 1, ConfigError, "loader: threads is ", threads, ", prefetch is ", ring,
                "; needs at least 0 and 1");
  assembler_ = std::make_unique<const Assembler>(std::move(subset), std::move(options));
  if (batches_per_epoch() == 0) return;
  if (threads > 0) prefetcher_ = std::make_unique<Prefetcher>(*assembler_, threads, ring);
  if (device.is_cpu()) return;
  feed_ = std::make_unique<DeviceFeed>(make_staging_ring(device, assembler_->layout(), DeviceFeed::kSlots),
                                       [this] { return fetch(); });
}

Loader::~Loader() = default;

std::int64_t Loader::batches_per_epoch() const noexcept { return assembler_->batches_per_epoch(); }
std::int64_t Loader::epoch() const noexcept { return position_ / std::max<std::int64_t>(1, batches_per_epoch()); }
std::int64_t Loader::batch() const noexcept { return position_ % std::max<std::int64_t>(1, batches_per_epoch()); }

Batch Loader::next() {
  TESSERA_CHECK(batches_per_epoch() > 0, InternalError, "loader: next() on an empty subset");
  Batch batch = feed_ ? feed_->next() : fetch();
  ++position_;
  return batch;
}

Batch Loader::fetch() {
  Batch batch = prefetcher_ ? prefetcher_->take() : assembler_->assemble(fetched_);
  ++fetched_;
  return batch;
}

void Loader::seek(std::int64_t epoch, std::int64_t batch) {
  TESSERA_CHECK(epoch >= 0 && batch >= 0 && batch < batches_per_epoch(), InternalError, "loader: seek to batch ", batch,
                " of epoch ", epoch, "; an epoch has ", batches_per_epoch(), " batches");
  const std::int64_t position = epoch * batches_per_epoch() + batch;
  if (position == position_) return;
  position_ = fetched_ = position;
  if (prefetcher_) prefetcher_->seek(position);
  if (feed_) feed_->restart();
}

}  // namespace tessera
