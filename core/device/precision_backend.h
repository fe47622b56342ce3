// What compute_dtype() asks of the host's processor; see core/device/precision.h.
#pragma once

#include <string>

namespace tessera::cpu {

bool onednn_has_bf16();    // products of bf16 at the speed of the hardware: avx512_bf16 or AMX
std::string onednn_isa();  // the instruction set that its kernels use: "avx512_core_bf16"

}  // namespace tessera::cpu
