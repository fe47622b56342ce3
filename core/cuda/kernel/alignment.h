// Whether an operand stands where accesses of several elements may read it: slices of a tensor begin anywhere.
#pragma once

#include <cstddef>
#include <cstdint>

namespace tessera::cuda {

inline bool is_aligned(const void* address, std::size_t bytes) { return reinterpret_cast<std::uintptr_t>(address) % bytes == 0; }

}  // namespace tessera::cuda
