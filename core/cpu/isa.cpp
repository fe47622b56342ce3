#include "core/cpu/isa.h"

#include <cstdlib>

#include "core/support/error.h"

namespace tessera::cpu {

std::string isa_name(Isa isa) { return isa == Isa::avx512 ? "avx512" : "avx2"; }

Isa choose_isa(const std::string& asked) {
  const bool wide = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
                    __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw");
  if (asked.empty()) return wide ? Isa::avx512 : Isa::avx2;
  if (asked == "avx2") return Isa::avx2;
  if (asked != "avx512") throw ConfigError(str("TESSERA_ISA: unknown instruction set '", asked, "'; it is avx2 or avx512"));
  if (!wide) throw ConfigError("TESSERA_ISA: this processor has no avx512; it has avx2");
  return Isa::avx512;
}

Isa isa() {
  static const Isa chosen = [] {
    const char* const asked = std::getenv("TESSERA_ISA");
    return choose_isa(asked == nullptr ? "" : asked);
  }();
  return chosen;
}

}  // namespace tessera::cpu
