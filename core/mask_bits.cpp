#include "core/mask_bits.h"

#include <bit>

#include "core/support/error.h"

namespace tessera {

std::int64_t packed_bytes(std::int64_t elements) { return (elements + 7) / 8; }

Tensor packed_bits(const Tensor& mask) {
  const Tensor host = mask.to(Device::cpu()).contiguous();
  const std::uint8_t* const from = host.data<std::uint8_t>();
  Tensor bits = Tensor::zeros({packed_bytes(host.numel())}, DType::u8);
  std::uint8_t* const to = bits.data<std::uint8_t>();
  for (std::int64_t i = 0; i < host.numel(); ++i) to[i / 8] |= static_cast<std::uint8_t>((from[i] != 0 ? 1 : 0) << (i % 8));
  return bits;
}

Tensor unpacked_bits(const Tensor& bits, const Shape& shape) {
  const Tensor host = bits.to(Device::cpu()).contiguous();
  const std::uint8_t* const from = host.data<std::uint8_t>();
  Tensor mask = Tensor::empty(shape, DType::u8);
  std::uint8_t* const to = mask.data<std::uint8_t>();
  for (std::int64_t i = 0; i < mask.numel(); ++i) to[i] = from[i / 8] >> (i % 8) & 1;
  return mask;
}

std::int64_t kept_bits(const Tensor& bits) {
  const Tensor host = bits.to(Device::cpu()).contiguous();
  std::int64_t kept = 0;
  for (std::int64_t i = 0; i < host.numel(); ++i) kept += std::popcount(host.data<std::uint8_t>()[i]);
  return kept;
}

std::string bits_fault(const Tensor& bits, std::int64_t elements, std::int64_t kept) {
  const Shape packed{packed_bytes(elements)};
  if (bits.dtype() != DType::u8 || bits.shape() != packed) return str("is ", describe(bits), "; needs u8 ", packed);
  if (elements % 8 != 0) {
    const std::uint8_t last = bits.to(Device::cpu()).contiguous().data<std::uint8_t>()[packed[0] - 1];
    if (last >> (elements % 8) != 0) return str("keeps elements behind the last of ", elements);
  }
  if (const std::int64_t found = kept_bits(bits); found != kept) return str("keeps ", found, " elements; needs ", kept);
  return {};
}

}  // namespace tessera
