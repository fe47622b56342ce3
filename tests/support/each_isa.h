// Tests of kernels that are built for several instruction sets, once for each: the parameter is "avx2" or "avx512".
#pragma once

#include <gtest/gtest.h>

#include <string_view>

#include "core/cpu/isa.h"

namespace tessera::testing {

class EachIsa : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    if (is_widest() && cpu::choose_isa("") != cpu::Isa::avx512) GTEST_SKIP() << "this processor has no AVX-512";
  }

  template <class Kernels>
  static const Kernels* one_of(const Kernels& avx2, const Kernels& avx512) {
    return is_widest() ? &avx512 : &avx2;
  }

 private:
  static bool is_widest() { return GetParam() == std::string_view("avx512"); }
};

}  // namespace tessera::testing
