// The oneDNN that the process runs with, for env.json: "2.6.3 avx512_core_bf16".
#pragma once

#include <string>

#include "core/device/precision_backend.h"

namespace tessera::cpu {

std::string onednn_version();

}  // namespace tessera::cpu
