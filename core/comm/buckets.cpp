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

// Of a tensor that a message of `most` bytes does not hold.
std::int64_t elements_of_piece(const Tensor& tensor, std::size_t most) {
  return static_cast<std::int64_t>(std::max<std::size_t>(most / size_of(tensor.dtype()), 1));
}

void reduce_in_pieces(Communicator& ranks, const Tensor& tensor, std::size_t most) {
  if (tensor.bytes() <= most) return ranks.all_reduce(tensor);
  check_reducible(tensor);
  const Tensor flat = tensor.reshape({tensor.numel()});
  const std::int64_t elements = elements_of_piece(tensor, most);
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

std::vector<std::size_t> message_bytes(std::span<const Tensor> tensors, std::size_t bytes) {
  std::vector<std::size_t> messages;
  for (std::size_t begin = 0, end = 0; begin < tensors.size(); begin = end) {
    end = end_of_bucket(tensors, begin, bytes);
    std::size_t left = 0;
    for (const Tensor& tensor : tensors.subspan(begin, end - begin)) left += tensor.bytes();
    const std::size_t piece =
        static_cast<std::size_t>(elements_of_piece(tensors[begin], bytes)) * size_of(tensors[begin].dtype());
    for (; end == begin + 1 && left > bytes && left > piece; left -= piece) messages.push_back(piece);
    messages.push_back(left);
  }
  return messages;
}

}  // namespace tessera
