// The instruction set of our own kernels. oneDNN chooses its own (onednn_version.h).
#pragma once

#include <string>

namespace tessera::cpu {

enum class Isa { avx2, avx512 };  // avx512: F, VL, DQ and BW

std::string isa_name(Isa isa);

// The best that this processor has where `asked` is empty, otherwise what it names. Throws ConfigError for another name and for
// what this processor lacks.
Isa choose_isa(const std::string& asked);

// choose_isa() of the environment's TESSERA_ISA, for the whole process.
Isa isa();

}  // namespace tessera::cpu
