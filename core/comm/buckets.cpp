#include "core/comm/buckets.h"

#include <cstring>

namespace tessera {
namespace {

// The tensors [begin, end) of one bucket.
std::size_t end_of_bucket(std::span<const Tensor> tensors, std::size_t begin, std::size_t most) {
  std::size_t end = begin + 1;
  std::size_t bytes = tensors[begin].bytes();
  while (end < tensors.size() && tensors[end].dtype() == tensors[begin].dtype() && bytes + tensors[end].bytes() <= most) {
    bytes += tensors[end].bytes();
    ++end;
  }
  return end;
}

void reduce_bucket(Communicator& ranks, std::span<const Tensor> tensors) {
  if (tensors.size() == 1) return ranks.all_reduce(tensors.front());
  std::int64_t elements = 0;
  for (const Tensor& tensor : tensors) {
    check_reducible(tensor);
    elements += tensor.numel();
  }
  const Tensor bucket = Tensor::empty({elements}, tensors.front().dtype());
  auto* at = static_cast<std::byte*>(bucket.raw());
  for (const Tensor& tensor : tensors) {
    std::memcpy(at, tensor.raw(), tensor.bytes());
    at += tensor.bytes();
  }
  ranks.all_reduce(bucket);
  at = static_cast<std::byte*>(bucket.raw());
  for (const Tensor& tensor : tensors) {
    std::memcpy(tensor.raw(), at, tensor.bytes());
    at += tensor.bytes();
  }
}

}  // namespace

void all_reduce(Communicator& ranks, std::span<const Tensor> tensors, std::size_t bytes) {
  for (std::size_t begin = 0; begin < tensors.size();) {
    const std::size_t end = end_of_bucket(tensors, begin, bytes);
    reduce_bucket(ranks, tensors.subspan(begin, end - begin));
    begin = end;
  }
}

}  // namespace tessera
