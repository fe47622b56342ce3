// Masks as files hold them: one bit an element, element i in bit i % 8, from the lowest, of byte i / 8; the last byte's other
// bits are 0.
#pragma once

#include <cstdint>
#include <string>

#include "core/tensor.h"

namespace tessera {

std::int64_t packed_bytes(std::int64_t elements);
Tensor packed_bits(const Tensor& mask);  // u8 on any device, 0 = not kept -> u8 [packed_bytes] on the CPU
Tensor unpacked_bits(const Tensor& bits, const Shape& shape);  // 0 or 1, u8 of `shape` on the CPU
std::int64_t kept_bits(const Tensor& bits);
// What is wrong with `bits` as a mask that keeps `kept` of `elements`; "" where nothing is.
std::string bits_fault(const Tensor& bits, std::int64_t elements, std::int64_t kept);

}  // namespace tessera
