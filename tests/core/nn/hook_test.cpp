#include "core/nn/hook.h"

#include <gtest/gtest.h>

#include <set>

#include "core/support/error.h"
#include "tests/support/message_of.h"

namespace tessera {
namespace {

TEST(StepSlots, AreEachOneValues) {
  StepSlots slots;
  std::set<std::size_t> seen;
  for (std::size_t i = 0; i < kStepSlots; ++i) seen.insert(slots.add("value" + std::to_string(i)));
  EXPECT_EQ(seen.size(), kStepSlots);
  EXPECT_EQ(*seen.rbegin(), kStepSlots - 1);
  EXPECT_EQ(message_of<InternalError>([&] { slots.add("one more"); }), "step state: no slot is left for 'one more' of 8");
}

TEST(StepSlots, ANameIsTakenOnce) {
  StepSlots slots;
  slots.add("ema.decay");
  EXPECT_EQ(message_of<InternalError>([&] { slots.add("ema.decay"); }), "step state: the slot 'ema.decay' is taken");
}

}  // namespace
}  // namespace tessera
