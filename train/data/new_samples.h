// Samples that belong to no data set: the content of a file that a user names, as a network reads it.
#pragma once

#include <cstdint>

#include "train/data/batch.h"

namespace tessera {

// The samples of one file.
class NewSamples {
 public:
  virtual ~NewSamples() = default;
  virtual const Field& field() const = 0;  // of one sample: what a network reads of it
  virtual std::int64_t size() const = 0;  // at least 1
  virtual bool numbered() const { return false; }  // the file is a list of samples, even if of only one
  // Writes a sample into `out`, of the field's shape and dtype, contiguous, on the host. Throws IoError naming the file.
  virtual void read(std::int64_t index, const Tensor& out) = 0;
};

}  // namespace tessera
