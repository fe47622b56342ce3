#include "core/cuda/runtime/built_for.h"

#include <gtest/gtest.h>

namespace tessera::cuda {
namespace {

TEST(BuiltFor, ItsLeastCapabilityIsOfTheLeastArchitectureAskedFor) {
  EXPECT_EQ(least_capability(), TESSERA_LEAST_ARCHITECTURE);
}

}  // namespace
}  // namespace tessera::cuda
