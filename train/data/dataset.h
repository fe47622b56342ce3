// What a run is trained and judged on: samples with named fields, whatever they are, and index lists that select from them
// without copying.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/config/value.h"
#include "train/data/batch.h"
#include "train/data/left_out.h"

namespace tessera {

// Every function may be called from several threads at once.
class Dataset {
 public:
  virtual ~Dataset() = default;
  virtual std::string_view name() const = 0;
  virtual std::int64_t size() const = 0;
  virtual const std::vector<Field>& fields() const = 0;  // the first one is what a network reads
  virtual std::size_t bytes() const = 0;  // held in memory for as long as the set lives

  // Writes samples into `out`, which has their number and the set's fields, contiguous, on the host. With an epoch they are
  // changed at random as training asks, which is a function of (seed, epoch, sample); without one they are as an evaluation sees
  // them. Throws IoError naming what cannot be read.
  virtual void assemble(std::span<const std::int64_t> samples, std::optional<std::int64_t> epoch, const Batch& out) const = 0;

  // XXH3-128 in hexadecimal over everything that samples are made of: equal content, equal text.
  virtual std::string fingerprint() const = 0;
  // Keys that a checkpoint's manifest keeps, a map: what the network's answers mean, such as the names of classes.
  virtual Value description() const = 0;
  // Where the sample came from, for messages: a path, or "cifar10[17]".
  virtual std::string origin(std::int64_t index) const = 0;
  // Whether samples are files of their own: origin() is then the path.
  virtual bool has_files() const { return false; }
  // A sample that the run goes on without. Training takes another one in its place; an evaluation has to leave it out.
  virtual bool is_left_out(std::int64_t) const { return false; }
  // Files that assemble() could not decode, in the order in which it met them. Where there are any, they are followed by the
  // files that changed since the set was read and cannot be decoded either.
  virtual std::vector<BrokenImage> met_broken() const { return {}; }
};

// The shape of what the network reads of one sample: [1, ...].
Shape sample_shape(const Dataset& dataset);

// Samples of a dataset, in their evaluation order. Copies share the dataset.
struct Subset {
  std::shared_ptr<const Dataset> dataset;
  std::vector<std::int64_t> indices;

  std::int64_t size() const { return static_cast<std::int64_t>(indices.size()); }
};
Subset all_of(std::shared_ptr<const Dataset> dataset);
Subset without_left_out(Subset subset);

}  // namespace tessera
