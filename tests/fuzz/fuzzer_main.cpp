// The functions that libFuzzer calls. TESSERA_FUZZ_TARGET names the target of this program.
#include <cstddef>
#include <cstdint>

#include "tests/fuzz/targets.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const tessera::fuzz::Target& target = tessera::fuzz::target(TESSERA_FUZZ_TARGET);
  target.run({reinterpret_cast<const char*>(data), size});
  return 0;
}
