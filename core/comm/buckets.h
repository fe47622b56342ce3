// Sums over ranks of many tensors, a few messages for all of them.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "core/comm/communicator.h"

namespace tessera {

inline constexpr std::size_t kBucketBytes = std::size_t{25} << 20;

// Each tensor becomes its sum over the ranks, see Communicator::all_reduce(). They are copied into buckets of up to `bytes` in
// the order given, tensors of one type in each; a larger tensor goes by itself, in pieces of as many. The bytes of a sum do not
// depend on the buckets.
void all_reduce(Communicator& ranks, std::span<const Tensor> tensors, std::size_t bytes = kBucketBytes);

// The sizes of the messages that it sends, in their order.
std::vector<std::size_t> message_bytes(std::span<const Tensor> tensors, std::size_t bytes = kBucketBytes);

}  // namespace tessera
