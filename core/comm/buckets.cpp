#include "core/comm/buckets.h"

#include <algorithm>
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

void reduce_in_pieces(Communicator& ranks, const Tensor& tensor, std::size_t most) {
  if (tensor.bytes() <= most) return ranks.all_reduce(tensor);
  check_reducible(tensor);
  const Tensor flat = tensor.reshape({tensor.numel()});
  const auto elements = static_cast<std::int64_t>(std::max<std::size_t>(most / size_of(tensor.dtype()), 1));
  for (std::int64_t begin = 0; begin < flat.numel(); begin += elements) {
    ranks.all_reduce(flat.slice(0, begin, std::min(begin + elements, flat.numel())));
  }
}

void reduce_bucket(Communicator& ranks, std::span<const Tensor> tensors, std::size_t most) {
  if (tensors.size() == 1) return reduce_in_pieces(ranks, tensors.front(), most);
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
    reduce_bucket(ranks, tensors.subspan(begin, end - begin), bytes);
    begin = end;
  }
}

}  // namespace tessera
