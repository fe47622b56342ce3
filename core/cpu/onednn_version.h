// The oneDNN that the process runs with, for env.json: "2.6.3 avx512_core_bf16".
#pragma once

#include <string>

namespace tessera::cpu {

std::string onednn_version();
std::string onednn_isa();  // the instruction set its kernels use: "avx512_core_bf16"

}  // namespace tessera::cpu
