#include "core/support/profile.h"

#include <gtest/gtest.h>

#include <stdexcept>
#include <thread>

namespace tessera {
namespace {

std::int64_t now = 0;
std::int64_t fake_clock() { return now; }
std::int64_t ticking_clock() { return ++now; }  // every reading advances the clock by a nanosecond

void work_outside(std::int64_t ns) { now += ns; }
void work_in_kernel(std::int64_t ns) {
  const KernelTimer timer;
  now += ns;
}

std::int64_t sum_of(const std::vector<ProfileRow>& rows) {
  std::int64_t sum = 0;
  for (const ProfileRow& row : rows) sum += row.ns();
  return sum;
}

void expect_row(const ProfileRow& row, ProfilePart part, const char* what, const char* layer, std::int64_t calls,
                std::int64_t kernel, std::int64_t engine) {
  EXPECT_EQ(row.part, part);
  EXPECT_EQ(row.what, what);
  EXPECT_EQ(row.layer, layer);
  EXPECT_EQ(row.calls, calls);
  EXPECT_EQ(row.kernel_ns, kernel);
  EXPECT_EQ(row.engine_ns, engine);
}

TEST(Profile, BooksWhatPassedInKernelsApartFromTheRest) {
  Profile profile(fake_clock);
  const ModulePath fc = keep_path("fc");
  {
    const ProfileScope scope(profile);
    work_outside(3);
    work_in_kernel(10);
    work_outside(1);
    work_in_kernel(20);
    profile.charge(ProfilePart::forward, "linear", fc, {.flops = 100, .bytes = 8});
    work_in_kernel(5);
    profile.charge(ProfilePart::forward, "linear", fc, {.flops = 1, .bytes = 2});
    work_outside(7);
    charge_profile(ProfilePart::hooks, "after_step");
    work_outside(2);
  }
  const std::vector<ProfileRow> rows = profile.rows();
  ASSERT_EQ(rows.size(), 3u);
  expect_row(rows[0], ProfilePart::forward, "linear", "fc", 2, 35, 4);
  EXPECT_EQ(rows[0].work.flops, 101);
  EXPECT_EQ(rows[0].work.bytes, 10);
  expect_row(rows[1], ProfilePart::hooks, "after_step", "", 1, 0, 7);
  expect_row(rows[2], ProfilePart::rest, "end", "", 1, 0, 2);
  EXPECT_EQ(profile.wall_ns(), 48);
}

TEST(Profile, AKernelInsideAKernelIsPartOfIt) {
  Profile profile(ticking_clock);
  {
    const ProfileScope scope(profile);
    const KernelTimer outer;
    work_in_kernel(4);
    work_in_kernel(5);
    now += 6;
    profile.charge(ProfilePart::forward, "copied and computed");
  }
  const std::vector<ProfileRow> rows = profile.rows();
  expect_row(rows.at(0), ProfilePart::forward, "copied and computed", "", 1, 16, 1);
}

TEST(Profile, RowsSumToTheWallWithItsOwnBookKeeping) {
  Profile profile(ticking_clock);
  for (int step = 0; step < 3; ++step) {
    const ProfileScope scope(profile);
    for (int op = 0; op < 5; ++op) {
      work_in_kernel(op);
      profile.charge(ProfilePart::forward, op % 2 == 0 ? "relu" : "add");
    }
    work_outside(100);
  }
  const std::vector<ProfileRow> rows = profile.rows();
  EXPECT_EQ(sum_of(rows), profile.wall_ns());
  EXPECT_EQ(rows.back().part, ProfilePart::profiler);
  EXPECT_EQ(rows.back().ns(), 15) << "each charge reads the clock once more when it is done";
}

TEST(Profile, TimeBetweenScopesIsNobodys) {
  Profile profile(fake_clock);
  {
    const ProfileScope scope(profile);
    work_in_kernel(1);
  }
  work_in_kernel(1000);
  charge_profile(ProfilePart::hooks, "unseen");
  {
    const ProfileScope scope(profile);
    work_in_kernel(2);
  }
  ASSERT_EQ(profile.rows().size(), 1u);
  expect_row(profile.rows()[0], ProfilePart::rest, "end", "", 2, 3, 0);
  EXPECT_EQ(profile.wall_ns(), 3);
}

TEST(Profile, IsOffOutsideItsScopeAndOnOtherThreads) {
  EXPECT_EQ(Profile::active(), nullptr);
  Profile profile(fake_clock);
  {
    const ProfileScope scope(profile);
    EXPECT_EQ(Profile::active(), &profile);
    Profile* seen = &profile;
    std::thread([&] { seen = Profile::active(); }).join();
    EXPECT_EQ(seen, nullptr);
    {
      Profile inner(fake_clock);
      const ProfileScope nested(inner);
      EXPECT_EQ(Profile::active(), &inner);
    }
    EXPECT_EQ(Profile::active(), &profile);
  }
  EXPECT_EQ(Profile::active(), nullptr);
}

TEST(Profile, AnExceptionLeavesTheKernel) {
  Profile profile(fake_clock);
  {
    const ProfileScope scope(profile);
    try {
      const KernelTimer timer;
      work_outside(4);
      throw std::runtime_error("in a kernel");
    } catch (const std::runtime_error&) {
    }
    work_outside(6);
  }
  expect_row(profile.rows().at(0), ProfilePart::rest, "end", "", 1, 4, 6);
}

}  // namespace
}  // namespace tessera
