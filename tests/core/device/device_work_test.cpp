#include "core/device/device_work.h"

#include <gtest/gtest.h>

namespace tessera {
namespace {

TEST(HostClock, IsReadInPlaceOfTheSystemsWhileItLives) {
  double now = 5;
  {
    const HostClock clock([&] { return now; });
    EXPECT_EQ(seconds_on(Device::cpu(), [&] { now += 2; }), 2);
  }
  EXPECT_LT(seconds_on(Device::cpu(), [&] { now += 1e6; }), 1e6);
}

}  // namespace
}  // namespace tessera
