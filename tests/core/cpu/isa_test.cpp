#include "core/cpu/isa.h"

#include <gtest/gtest.h>

#include "core/support/error.h"
#include "tests/support/message_of.h"

namespace tessera::cpu {
namespace {

TEST(Isa, IsTheBestOrTheOneAskedFor) {
  EXPECT_EQ(choose_isa("avx2"), Isa::avx2);
  const Isa best = choose_isa("");
  EXPECT_EQ(isa_name(best), __builtin_cpu_supports("avx512bw") ? "avx512" : "avx2");
  EXPECT_EQ(choose_isa(isa_name(best)), best);
}

TEST(Isa, RefusesWhatTheProcessorLacksAndOtherNames) {
  EXPECT_EQ(message_of<ConfigError>([] { choose_isa("sse4"); }),
            "TESSERA_ISA: unknown instruction set 'sse4'; it is avx2 or avx512");
  if (choose_isa("") == Isa::avx512) return;
  EXPECT_EQ(message_of<ConfigError>([] { choose_isa("avx512"); }), "TESSERA_ISA: this processor has no avx512; it has avx2");
}

}  // namespace
}  // namespace tessera::cpu
