#include "core/comm/buckets.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace tessera {
namespace {

// Both are contiguous and of one size. On the CPU the calling thread copies: another one computes on all cores meanwhile.
void copy(const Tensor& from, const Tensor& to) {
  if (to.device().is_cpu()) {
    std::memcpy(to.raw(), from.raw(), from.bytes());
  } else {
    to.copy_from(from.reshape(to.shape()));
  }
}

}  // namespace

bool Bucket::takes(const Tensor& tensor) const {
  if (empty()) return true;
  const Tensor& first = tensors_.front();
  return tensor.dtype() == first.dtype() && tensor.device() == first.device() && bytes_ + tensor.bytes() <= most_;
}

void Bucket::add(const Tensor& tensor, std::string_view name) {
  check_reducible(tensor);
  bytes_ += tensor.bytes();
  tensors_.push_back(tensor);
  if (!names_.empty()) names_ += ' ';
  names_ += name;
}

void Bucket::reduce_in_pieces(Communicator& ranks, const Tensor& tensor) const {
  if (tensor.bytes() <= most_) return ranks.all_reduce(tensor, names_);
  const Tensor flat = tensor.reshape({tensor.numel()});
  const auto elements = static_cast<std::int64_t>(std::max<std::size_t>(most_ / size_of(tensor.dtype()), 1));
  for (std::int64_t begin = 0; begin < flat.numel(); begin += elements) {
    ranks.all_reduce(flat.slice(0, begin, std::min(begin + elements, flat.numel())), names_);
  }
}

void Bucket::all_reduce(Communicator& ranks) const {
  if (empty() || ranks.size() == 1) return;
  if (tensors_.size() == 1) return reduce_in_pieces(ranks, tensors_.front());
  const Tensor& first = tensors_.front();
  const Tensor message =
      Tensor::empty({static_cast<std::int64_t>(bytes_ / size_of(first.dtype()))}, first.dtype(), first.device());
  const auto for_each_part = [&](const auto& body) {
    std::int64_t at = 0;
    for (const Tensor& tensor : tensors_) {
      body(tensor, message.slice(0, at, at + tensor.numel()));
      at += tensor.numel();
    }
  };
  for_each_part([](const Tensor& tensor, const Tensor& part) { copy(tensor, part); });
  ranks.all_reduce(message, names_);
  for_each_part([](const Tensor& tensor, const Tensor& part) { copy(part, tensor); });
}

void all_reduce(Communicator& ranks, std::span<const Tensor> tensors, std::size_t bytes) {
  Bucket bucket(bytes);
  for (const Tensor& tensor : tensors) {
    if (!bucket.takes(tensor)) std::exchange(bucket, Bucket(bytes)).all_reduce(ranks);
    bucket.add(tensor);
  }
  bucket.all_reduce(ranks);
}

}  // namespace tessera
