// The oneDNN that the process runs with, for env.json: "2.6.3 avx512_core_bf16".
#pragma once

#include <string>

namespace tessera::cpu {

std::string onednn_version();
bool onednn_has_bf16();     // products of bf16 at the speed of the hardware: avx512_bf16 or AMX
std::string onednn_isa();  // the instruction set its kernels use: "avx512_core_bf16"

}  // namespace tessera::cpu
