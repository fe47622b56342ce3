#include "core/ops/attention_pattern.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>

#include "core/cpu/attention/element_tiles.h"
#include "core/support/error.h"
#include "core/support/rounding.h"

namespace tessera {
namespace {

constexpr std::int64_t kMostUnits = 65536;

std::int64_t units_of(const AttentionPatternOptions& o) { return ceil_div(o.positions, o.block); }

// Distance, in units, of the nearest two units all of whose pairs are outside the band.
std::int64_t nearest_beside_band(const AttentionPatternOptions& o) { return ceil_div(o.band - 1, o.block) + 1; }

// Pairs of units outside the band that a head keeps.
std::int64_t kept_of(const AttentionPatternOptions& o) {
  const std::int64_t lines = std::max<std::int64_t>(units_of(o) - nearest_beside_band(o), 0);  // diagonals on one side
  const std::int64_t beside = lines * (lines + 1) / (o.causal ? 2 : 1);
  return std::llround(o.density * static_cast<double>(beside));
}

}  // namespace

void AttentionPattern::check(const AttentionPatternOptions& o) {
  TESSERA_CHECK(o.positions >= 1 && o.heads >= 1 && o.band >= 1, ConfigError, "attention pattern: positions are ", o.positions,
                ", heads ", o.heads, ", band is ", o.band, "; needs 1 or more of each");
  TESSERA_CHECK(o.density >= 0 && o.density <= 1, ConfigError, "attention pattern: density is ", o.density,
                "; needs 0 <= density <= 1");
  TESSERA_CHECK(o.block == 1 || o.block == 16 || o.block == 32, ConfigError, "attention pattern: block is ", o.block,
                "; needs 1, 16 or 32");
  TESSERA_CHECK(units_of(o) <= kMostUnits, ConfigError, "attention pattern: positions are ", o.positions, " in blocks of ",
                o.block, "; needs at most ", kMostUnits, " blocks");
  const std::int64_t kept = kept_of(o);
  TESSERA_CHECK(units_of(o) + kept <= kMostListed / o.heads, ConfigError, "attention pattern: each of ", o.heads, " heads has ",
                units_of(o), " rows and keeps ", kept, " pairs beside the band; needs at most ", kMostListed,
                " of both in all: a lower density, or blocks");
}

namespace {

// Offsets of the diagonals outside the band, ascending.
std::vector<std::int64_t> diagonals_of(const AttentionPatternOptions& o, std::int64_t units) {
  const std::int64_t nearest = nearest_beside_band(o);
  std::vector<std::int64_t> diagonals;
  for (std::int64_t distance = units - 1; distance >= nearest; --distance) diagonals.push_back(-distance);
  for (std::int64_t distance = nearest; !o.causal && distance < units; ++distance) diagonals.push_back(distance);
  return diagonals;
}

// The c for which probabilities min(1, c / distance) keep `kept` pairs in expectation, by bisection: the number rises with c.
double scale_for(std::int64_t units, std::span<const std::int64_t> diagonals, std::int64_t kept) {
  const auto expected = [&](double c) {
    double sum = 0;
    for (const std::int64_t offset : diagonals) {
      const auto distance = static_cast<double>(std::abs(offset));
      sum += (static_cast<double>(units) - distance) * std::min(1.0, c / distance);
    }
    return sum;
  };
  double low = 0, high = static_cast<double>(units);  // `high` keeps all pairs
  for (int i = 0; i < 100 && low < high; ++i) {
    const double middle = 0.5 * (low + high);
    (expected(middle) < static_cast<double>(kept) ? low : high) = middle;
  }
  return high;
}

// Draws `count` different numbers below `most`, ascending. Every such set is equally likely (Bentley and Floyd, "A sample of
// brilliance", 1987).
class Sampler {
 public:
  Sampler(RngStream stream, std::int64_t head) : stream_(stream), step_(static_cast<std::uint64_t>(head)) {}

  // A result is farther from 0 and from 1 than the rounding error of a sum of expected numbers.
  double uniform() { return (static_cast<double>(random_u32(stream_, step_, next_++) >> 12) + 0.5) * 0x1p-20; }

  template <class Body>
  void sample(std::int64_t count, std::int64_t most, const Body& body) {
    if (taken_.size() < static_cast<std::size_t>(most)) taken_.resize(static_cast<std::size_t>(most), false);
    chosen_.clear();
    for (std::int64_t i = most - count; i < most; ++i) {
      const std::int64_t drawn = random_below(stream_, step_, next_++, i + 1);
      chosen_.push_back(taken_[static_cast<std::size_t>(drawn)] ? i : drawn);
      taken_[static_cast<std::size_t>(chosen_.back())] = true;
    }
    std::ranges::sort(chosen_);
    for (const std::int64_t i : chosen_) {
      taken_[static_cast<std::size_t>(i)] = false;
      body(i);
    }
  }

 private:
  RngStream stream_;
  std::uint64_t step_, next_ = 0;
  std::vector<bool> taken_;  // all false between two samples
  std::vector<std::int64_t> chosen_;
};

struct Pair {
  std::uint16_t query, key;
};

}  // namespace

AttentionPattern::AttentionPattern(const AttentionPatternOptions& options) : options_(options) {
  check(options);
  units_ = units_of(options);
  const std::vector<std::int64_t> diagonals = diagonals_of(options, units_);
  kept_ = kept_of(options);
  const double scale = scale_for(units_, diagonals, kept_);
  offsets_.reserve(static_cast<std::size_t>(options.heads * units_ + 1));
  offsets_.push_back(0);
  keys_.resize(static_cast<std::size_t>(options.heads * kept_));
  for (std::int64_t head = 0; head < options.heads; ++head) draw(head, scale, diagonals);
}

AttentionPattern::~AttentionPattern() = default;

// The diagonals are visited by ascending offset, so the keys of a row ascend too.
void AttentionPattern::draw(std::int64_t head, double scale, std::span<const std::int64_t> diagonals) {
  Sampler sampler(options_.stream, head);
  std::vector<Pair> pairs;
  pairs.reserve(static_cast<std::size_t>(kept_));
  double expected = sampler.uniform();
  for (const std::int64_t offset : diagonals) {
    const std::int64_t distance = std::abs(offset), length = units_ - distance;
    expected += static_cast<double>(length) * std::min(1.0, scale / static_cast<double>(distance));
    const bool last = offset == diagonals.back();
    const auto until = last ? kept_ : std::min(kept_, static_cast<std::int64_t>(expected));
    const std::int64_t count = std::clamp<std::int64_t>(until - static_cast<std::int64_t>(pairs.size()), 0, length);
    sampler.sample(count, length, [&](std::int64_t i) {
      const std::int64_t query = offset < 0 ? i - offset : i;
      pairs.push_back({static_cast<std::uint16_t>(query), static_cast<std::uint16_t>(query + offset)});
    });
  }
  TESSERA_CHECK(static_cast<std::int64_t>(pairs.size()) == kept_, InternalError, "attention pattern: a head keeps ", pairs.size(),
                " pairs in place of ", kept_);
  std::vector<std::int64_t> next(static_cast<std::size_t>(units_) + 1, 0);
  for (const Pair& pair : pairs) ++next[std::size_t{pair.query} + 1];
  next[0] = head * kept_;
  for (std::size_t unit = 0; unit + 1 < next.size(); ++unit) {
    next[unit + 1] += next[unit];
    offsets_.push_back(next[unit + 1]);
  }
  for (const Pair& pair : pairs) keys_[static_cast<std::size_t>(next[pair.query]++)] = pair.key;
}

bool AttentionPattern::sees_beside_band(std::int64_t head, std::int64_t query, std::int64_t key) const {
  const std::span<const std::uint16_t> keys = row(head, query / options_.block);
  return std::ranges::binary_search(keys, static_cast<std::uint16_t>(key / options_.block));
}

std::int64_t AttentionPattern::count(std::int64_t queries, std::int64_t keys) const {
  std::int64_t pairs = 0;
  for (std::int64_t head = 0; head < options_.heads; ++head) {
    for (std::int64_t query = keys - queries; query < keys; ++query) {
      for (const std::int64_t unit : row(head, query / options_.block)) {
        pairs += std::clamp<std::int64_t>(keys - unit * options_.block, 0, options_.block);
      }
    }
  }
  return pairs;
}

std::int64_t AttentionPattern::bytes() const {
  const std::scoped_lock lock(lock_);
  std::size_t all = offsets_.size() * sizeof(offsets_[0]) + keys_.size() * sizeof(keys_[0]) + (tiles_ ? tiles_->bytes() : 0);
  if (on_device_) {
    for (const Tensor& list : {on_device_->offsets, on_device_->keys, on_device_->key_offsets, on_device_->queries})
      all += list.bytes();
  }
  return static_cast<std::int64_t>(all);
}

const cpu::attention::ElementTiles& AttentionPattern::tiles() const {
  const std::scoped_lock lock(lock_);
  if (!tiles_) {
    tiles_ =
        std::make_unique<cpu::attention::ElementTiles>(cpu::attention::element_tiles(offsets_, keys_, options_.heads, units_));
  }
  return *tiles_;
}

namespace {

Tensor bytes_of(const std::vector<std::uint16_t>& units) {
  const Tensor bytes = Tensor::empty({static_cast<std::int64_t>(2 * units.size())}, DType::u8);
  if (!units.empty()) std::memcpy(bytes.raw(), units.data(), 2 * units.size());
  return bytes;
}

}  // namespace

const AttentionPattern::OnDevice& AttentionPattern::on(Device device) const {
  const std::scoped_lock lock(lock_);
  if (on_device_ && on_device_->offsets.device() == device) return *on_device_;
  std::vector<std::int64_t> key_offsets(offsets_.size(), 0);
  const auto rows = static_cast<std::size_t>(options_.heads * units_), units = static_cast<std::size_t>(units_);
  for (std::size_t r = 0; r < rows; ++r) {
    for (const std::size_t key : row(static_cast<std::int64_t>(r / units), static_cast<std::int64_t>(r % units))) {
      ++key_offsets[r / units * units + key + 1];
    }
  }
  for (std::size_t r = 0; r < rows; ++r) key_offsets[r + 1] += key_offsets[r];
  std::vector<std::int64_t> next = key_offsets;
  std::vector<std::uint16_t> queries(keys_.size());
  for (std::size_t r = 0; r < rows; ++r) {
    for (const std::size_t key : row(static_cast<std::int64_t>(r / units), static_cast<std::int64_t>(r % units))) {
      queries[static_cast<std::size_t>(next[r / units * units + key]++)] = static_cast<std::uint16_t>(r % units);
    }
  }
  const Shape shape{static_cast<std::int64_t>(offsets_.size())};
  on_device_ = std::make_unique<OnDevice>(OnDevice{Tensor::from(offsets_, shape).to(device), bytes_of(keys_).to(device),
                                                   Tensor::from(key_offsets, shape).to(device), bytes_of(queries).to(device)});
  return *on_device_;
}

}  // namespace tessera
