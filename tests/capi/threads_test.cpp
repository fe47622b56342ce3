// Several threads with one network, and several networks at the same time.
#include <gtest/gtest.h>

#include <thread>

#include "tests/capi/networks.h"

namespace tessera::capi::testing {
namespace {

constexpr int kThreads = 4;
constexpr int kRounds = 5;

// Each thread has different images and a different batch size.
std::vector<float> say(const Loaded& network, int thread) {
  Buffer<float> images = some_images(1 + thread);
  for (float& value : images.values) value += 0.1f * static_cast<float>(thread);
  return scores_of(network, images);
}

void expect_four_as_one(const Loaded& network) {
  std::vector<std::vector<float>> alone;
  for (int i = 0; i < kThreads; ++i) alone.push_back(say(network, i));
  std::vector<std::vector<std::vector<float>>> together(kThreads);
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&, i] {
      for (int round = 0; round < kRounds; ++round) together[static_cast<std::size_t>(i)].push_back(say(network, i));
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (std::size_t i = 0; i < kThreads; ++i) {
    for (const std::vector<float>& said : together[i]) EXPECT_EQ(said, alone[i]) << "thread " << i;
  }
}

TEST(CThreads, FourWithOneNetworkSayWhatOneSays) {
  for (const std::string& stages : {kDense, kFactored, kSparse}) {
    SCOPED_TRACE(stages);
    const TemporaryFolder folder;
    expect_four_as_one(Loaded(trained(folder.path(), experiment(stages))));
  }
}

TEST(CThreads, NetworksRunBesideEachOther) {
  const std::vector<float> alone = say(Loaded(dense_run()), 2);
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&] {
      const Loaded own(dense_run());
      for (int round = 0; round < kRounds; ++round) EXPECT_EQ(say(own, 2), alone);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST(CThreads, AnErrorIsThatOfItsThread) {
  EXPECT_EQ(tessera_describe(nullptr, nullptr), TESSERA_BAD_ARGUMENT);
  std::string elsewhere = "not asked";
  std::thread([&] { elsewhere = tessera_last_error(); }).join();
  EXPECT_EQ(elsewhere, "");
  EXPECT_STREQ(tessera_last_error(), "tessera_describe: network is null");
}

}  // namespace
}  // namespace tessera::capi::testing
