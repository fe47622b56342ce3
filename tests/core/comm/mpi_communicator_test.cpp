// Run by mpirun with several ranks. Each rank runs every case.
#include "core/comm/mpi_communicator.h"

#include <gtest/gtest.h>

#include <atomic>
#include <bit>
#include <chrono>
#include <cmath>
#include <ctime>
#include <thread>

#include "core/comm/heartbeat.h"
#include "core/support/error.h"
#include "tests/core/comm/rank_values.h"
#include "tests/core/comm/ranks.h"
#include "tests/support/message_of.h"

namespace tessera {
namespace {

template <class T>
void expect_sums_in_rank_order(std::int64_t count) {
  SCOPED_TRACE(count);
  const Tensor values = Tensor::from(values_of<T>(ranks().rank(), count), {count});
  ranks().all_reduce(values);
  EXPECT_EQ(values.to_vector<T>(), sums_in_rank_order<T>(count));
}

TEST(MpiCommunicator, HasSeveralRanks) {
  ASSERT_GE(ranks().size(), 2);
  EXPECT_LT(ranks().rank(), ranks().size());
  const std::vector<std::string> all = ranks().all_gather(std::to_string(ranks().rank()));
  ASSERT_EQ(all.size(), static_cast<std::size_t>(ranks().size()));
  for (std::size_t r = 0; r < all.size(); ++r) EXPECT_EQ(all[r], std::to_string(r));
}

// Fewer elements than ranks, pieces of unequal size, no elements, and messages above MPI's eager limit.
TEST(MpiCommunicator, SumsHaveTheBytesOfAddingInTheOrderOfRanks) {
  for (const std::int64_t count : {1, 3, 7, 257, 100003}) {
    expect_sums_in_rank_order<float>(count);
    expect_sums_in_rank_order<double>(count);
  }
  expect_sums_in_rank_order<float>(0);
}

TEST(MpiCommunicator, OneRanksNanIsEveryRanks) {
  const Tensor values = Tensor::zeros({5});
  if (ranks().rank() == ranks().size() - 1) values.data<float>()[2] = NAN;
  ranks().all_reduce(values);
  for (int i = 0; i < 5; ++i) EXPECT_EQ(std::isnan(values.data<float>()[i]), i == 2) << i;
}

TEST(MpiCommunicator, BroadcastsRankZerosBytesOfAnyLength) {
  for (const std::size_t length : {std::size_t{0}, std::size_t{1}, std::size_t{3'000'000}}) {
    std::string expected(length, 'x');
    for (std::size_t i = 0; i < length; ++i) expected[i] = static_cast<char>(i * 7);
    std::string bytes = ranks().rank() == 0 ? expected : std::string(17, '?');
    ranks().broadcast(bytes);
    EXPECT_EQ(bytes, expected);
  }
}

TEST(MpiCommunicator, GathersTextsOfDifferentLengths) {
  const auto text_of = [](int rank) { return std::string(static_cast<std::size_t>(rank) * 1000, static_cast<char>('a' + rank)); };
  const std::vector<std::string> all = ranks().all_gather(text_of(ranks().rank()));
  for (int r = 0; r < ranks().size(); ++r) EXPECT_EQ(all.at(static_cast<std::size_t>(r)), text_of(r));
}

TEST(MpiCommunicator, AFlagOfOneRankIsEveryRanks) {
  EXPECT_EQ(ranks().any(0), 0u);
  const std::uint64_t every = (std::uint64_t{1} << ranks().size()) - 1;
  EXPECT_EQ(ranks().any(std::uint64_t{1} << ranks().rank()), every);
  ranks().barrier();
}

double processor_seconds() {
  std::timespec time{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

// A busy wait uses the processor for the whole second that rank 0 sleeps, a sleeping wait for a few hundredths. Processor time
// does not depend on what else the machine does.
TEST(MpiCommunicator, ARankThatWaitsLeavesTheProcessorToOthers) {
  ranks().barrier();
  const double before = processor_seconds();
  if (ranks().rank() == 0) std::this_thread::sleep_for(std::chrono::seconds(1));
  ranks().barrier();
  EXPECT_LT(processor_seconds() - before, 0.5);
}

// Rank 0 sleeps longer than a rank may be silent. A waiting rank still answers, so it is not silent.
TEST(MpiCommunicator, RanksThatAnswerAreNotMissed) {
  static std::atomic<int> missed{0};  // outlives the watch
  ranks().watch([](int) { ++missed; });
  if (ranks().rank() == 0) std::this_thread::sleep_for(kSilence + std::chrono::seconds(2));
  ranks().barrier();
  EXPECT_EQ(missed, 0);
}

// MPI alone would let a rank continue with another rank's size, or confuse two calls.
TEST(MpiCommunicator, EveryRankIsToldWhenRanksDoNotDoTheSame) {
  const bool odd = ranks().rank() == 1;
  const auto told = [](const std::function<void()>& call) { return message_of<InternalError>(call); };
  const std::string sizes = told([&] { ranks().all_reduce(Tensor::zeros({odd ? 3 : 4})); });
  EXPECT_TRUE(
      sizes.starts_with("ranks do not do the same: rank 0: all_reduce of f32 [4] on cpu, rank 1: all_reduce of f32 [3] on cpu"))
      << sizes;
  const std::string types = told([&] { ranks().all_reduce(Tensor::zeros({4}, odd ? DType::f64 : DType::f32)); });
  EXPECT_NE(types.find("rank 1: all_reduce of f64 [4]"), std::string::npos) << types;
  const std::string calls = told([&] {
    if (odd) {
      ranks().barrier();
    } else {
      static_cast<void>(ranks().any(1));
    }
  });
  EXPECT_TRUE(calls.starts_with("ranks do not do the same: rank 0: any, rank 1: barrier")) << calls;
  const std::string names = told([&] { ranks().all_reduce(Tensor::zeros({4}), odd ? "fc.bias" : "fc.weight"); });
  EXPECT_NE(names.find("rank 1: all_reduce of f32 [4] on cpu fc.bias"), std::string::npos) << names;
  expect_sums_in_rank_order<float>(5);  // the ranks continue together
}

// Rank 0 ends its second thread's call before this thread's barrier. On other ranks both calls may run at once.
TEST(MpiCommunicator, CallsOfAnotherThreadDoNotMeetThoseOfThisOne) {
  Communicator* const beside = ranks().beside();
  ASSERT_NE(beside, nullptr);
  EXPECT_EQ(ranks().beside(), beside) << "made once";
  EXPECT_EQ(beside->rank(), ranks().rank());
  EXPECT_EQ(beside->size(), ranks().size());
  std::uint64_t flags = 0;
  std::thread other([&] { flags = beside->any(std::uint64_t{1} << ranks().rank()); });
  if (ranks().rank() == 0) other.join();
  ranks().barrier();
  if (ranks().rank() != 0) other.join();
  EXPECT_EQ(flags, (std::uint64_t{1} << ranks().size()) - 1);
}

}  // namespace
}  // namespace tessera
