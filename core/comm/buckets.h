// Sums over ranks of many tensors, a few messages for all of them.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/comm/communicator.h"

namespace tessera {

inline constexpr std::size_t kBucketBytes = std::size_t{25} << 20;
// The size of the first message of a backward, so that small networks, too, begin to send before it ends.
inline constexpr std::size_t kFirstBucketBytes = std::size_t{1} << 20;

// Tensors of one type and device that are copied into one message, of up to `bytes`. A larger tensor is alone in its bucket, and
// is sent in pieces of `bytes`. The bytes of a sum do not depend on the bucket.
class Bucket {
 public:
  explicit Bucket(std::size_t bytes = kBucketBytes) : most_(bytes) {}

  bool empty() const noexcept { return tensors_.empty(); }
  bool is_on_gpu() const noexcept { return !empty() && tensors_.front().device().is_cuda(); }
  bool takes(const Tensor& tensor) const;  // an empty one takes any
  void add(const Tensor& tensor, std::string_view name = {});
  // Each becomes its sum over the ranks, see Communicator::all_reduce().
  void all_reduce(Communicator& ranks) const;

 private:
  void reduce_in_pieces(Communicator& ranks, const Tensor& tensor) const;

  std::size_t most_;
  std::size_t bytes_ = 0;
  std::vector<Tensor> tensors_;
  std::string names_;
};

// Each tensor becomes its sum over the ranks, in buckets that are filled in the order given.
void all_reduce(Communicator& ranks, std::span<const Tensor> tensors, std::size_t bytes = kBucketBytes);

}  // namespace tessera
