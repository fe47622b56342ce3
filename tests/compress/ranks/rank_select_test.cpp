#include "compress/ranks/rank_select.h"

#include <gtest/gtest.h>

#include <cmath>

#include "core/config/read.h"
#include "core/support/error.h"
#include "tests/support/message_of.h"

namespace tessera::testing {
namespace {

// A 3x3 convolution whose singular values fall geometrically.
RankLayer layer(const std::string& path, std::int64_t out, std::int64_t in, std::int64_t pixels, double decay = 0.95) {
  RankLayer made{.path = path, .out = out, .in = in, .taps = 9, .input_pixels = pixels, .output_pixels = pixels,
                 .out_spectrum = {}, .in_spectrum = {}};
  for (std::int64_t i = 0; i < out; ++i) made.out_spectrum.push_back(std::pow(decay, static_cast<double>(i)));
  for (std::int64_t i = 0; i < in; ++i) made.in_spectrum.push_back(std::pow(decay, static_cast<double>(i)));
  return made;
}

const std::vector<RankLayer> kNetwork{layer("a", 64, 64, 256), layer("b", 128, 64, 64, 0.9), layer("c", 128, 128, 64, 0.98),
                                      layer("d", 67, 31, 49)};

double kept_macs(std::span<const RankLayer> layers, const std::vector<RankChoice>& choices) {
  double kept = 0;
  double dense = 0;
  for (std::size_t i = 0; i < layers.size(); ++i) {
    const RankLayer& l = layers[i];
    kept += static_cast<double>(choices[i].ranks ? l.tucker_macs(*choices[i].ranks) : l.dense_macs());
    dense += static_cast<double>(l.dense_macs());
  }
  return kept / dense;
}

TEST(RankSelect, MacsReachTheAskedFractionFromBelow) {
  for (const double asked : {0.05, 0.2, 0.4, 0.6}) {
    SCOPED_TRACE(asked);
    const double kept = kept_macs(kNetwork, select_ranks({.macs = asked}, kNetwork));
    EXPECT_LE(kept, asked);
    EXPECT_GT(kept, asked - 0.005);  // one step of the smallest layer is worth less
  }
}

TEST(RankSelect, ParametersReachTheAskedFraction) {
  const std::vector<RankChoice> choices = select_ranks({.params = 0.3}, kNetwork);
  double kept = 0;
  double dense = 0;
  for (std::size_t i = 0; i < kNetwork.size(); ++i) {
    ASSERT_TRUE(choices[i].ranks);
    kept += static_cast<double>(kNetwork[i].tucker_parameters(*choices[i].ranks));
    dense += static_cast<double>(kNetwork[i].dense_parameters());
  }
  EXPECT_LE(kept / dense, 0.3);
  EXPECT_GT(kept / dense, 0.295);
}

TEST(RankSelect, PerLayerHoldsTheFractionInEachLayer) {
  const std::vector<RankChoice> choices = select_ranks({.macs = 0.4, .per = "layer"}, kNetwork);
  for (std::size_t i = 0; i < kNetwork.size(); ++i) {
    SCOPED_TRACE(kNetwork[i].path);
    const double kept = kept_macs({&kNetwork[i], 1}, {choices[i]});
    EXPECT_LE(kept, 0.4);
    EXPECT_GT(kept, 0.35);
  }
}

TEST(RankSelect, FixedCostsCountInTheirTotals) {
  std::int64_t dense = 0;
  for (const RankLayer& l : kNetwork) dense += l.dense_macs();
  // As much again, unchanged: 0.7 of everything leaves 0.4 for the layers.
  const FixedCost matched{.matched = dense, .other = 0};
  EXPECT_NEAR(kept_macs(kNetwork, select_ranks({.macs = 0.7}, kNetwork, matched)), 0.4, 0.005);
  const FixedCost other{.matched = 0, .other = dense};
  EXPECT_NEAR(kept_macs(kNetwork, select_ranks({.macs = 0.7, .per = "network"}, kNetwork, other)), 0.4, 0.005);
  EXPECT_NEAR(kept_macs(kNetwork, select_ranks({.macs = 0.4}, kNetwork, other)), 0.4, 0.005);
}

TEST(RankSelect, RanksAreMultiplesWithinTheModes) {
  const std::vector<RankChoice> choices = select_ranks({.macs = 0.4, .multiple_of = 16}, kNetwork);
  EXPECT_LE(kept_macs(kNetwork, choices), 0.4);
  for (std::size_t i = 0; i < kNetwork.size(); ++i) {
    ASSERT_TRUE(choices[i].ranks) << kNetwork[i].path;
    const Tucker2Ranks r = *choices[i].ranks;
    EXPECT_TRUE(r.out % 16 == 0 || r.out == kNetwork[i].out) << r.out;
    EXPECT_TRUE(r.in % 16 == 0 || r.in == kNetwork[i].in) << r.in;
  }
  EXPECT_EQ(round_rank(23, 64, 16), 16);
  EXPECT_EQ(round_rank(24, 64, 16), 32);
  EXPECT_EQ(round_rank(1, 64, 16), 16);
  EXPECT_EQ(round_rank(1, 10, 16), 10);
  EXPECT_EQ(round_rank(67, 67, 16), 64);
  EXPECT_EQ(round_rank(5, 7, 1), 5);
}

TEST(RankSelect, EnergyGivesTheSmallestRanks) {
  const std::vector<double> spectrum{3, 2, 1, 0};  // squares 9, 4, 1, 0
  EXPECT_EQ(energy_rank(spectrum, 9.0 / 14), 1);
  EXPECT_EQ(energy_rank(spectrum, 9.1 / 14), 2);
  EXPECT_EQ(energy_rank(spectrum, 1.0), 3);
  EXPECT_EQ(energy_rank(spectrum, 0.0), 1);
  EXPECT_EQ(energy_rank(std::vector<double>{0, 0}, 0.5), 1);
  RankLayer one = layer("a", 64, 64, 4);
  one.out_spectrum = one.in_spectrum = std::vector<double>(64, 1.0);
  EXPECT_EQ(*select_ranks({.energy = 0.25}, {&one, 1})[0].ranks, (Tucker2Ranks{16, 16}));
  EXPECT_EQ(*select_ranks({.energy = 0.26, .multiple_of = 8}, {&one, 1})[0].ranks, (Tucker2Ranks{24, 24}));
}

TEST(RankSelect, ALayerThatWouldNotGetCheaperStaysDense) {
  const std::vector<RankChoice> choices = select_ranks({.out = 60, .in = 60}, {kNetwork.data(), 1});
  EXPECT_FALSE(choices[0].ranks);
  EXPECT_EQ(choices[0].reason, "factored MACs 10260480 at ranks out 60 in 60 are not below dense 9437184");
  EXPECT_EQ(select_ranks({.macs = 1.0}, kNetwork)[0].ranks, std::nullopt);
}

TEST(RankSelect, ExplicitRanksNameLayerModeAndRange) {
  EXPECT_EQ(*select_ranks({.out = 30, .in = 20}, kNetwork)[2].ranks, (Tucker2Ranks{.out = 30, .in = 20}));
  EXPECT_EQ(message_of<ConfigError>([] { select_ranks({.out = 64, .in = 32}, kNetwork); }),
            "layer 'd': in rank is 32, the mode has size 31; legal range is 1..31");
}

TEST(RankSelect, UnreachableFractionsNameTheSmallest) {
  const std::string message = message_of<ConfigError>([] { select_ranks({.macs = 0.01, .multiple_of = 16}, kNetwork); });
  EXPECT_EQ(message.find("ranks: macs 0.01 per matched cannot be reached: multiples of 16 keep at least 0."), 0u) << message;
}

TEST(RankSelect, ConfigTakesExactlyOneForm) {
  Value ranks = Value::map();
  EXPECT_NE(message_of<ConfigError>([&] { read<RankConfig>(ranks); }).find("give exactly one of"), std::string::npos);
  ranks.set("macs", 0.4);
  EXPECT_EQ(*read<RankConfig>(ranks).macs, 0.4);
  EXPECT_EQ(write(read<RankConfig>(ranks)).find("macs")->as_double(), 0.4);
  ranks.set("energy", 0.9);
  EXPECT_NE(message_of<ConfigError>([&] { read<RankConfig>(ranks); }).find("give exactly one of"), std::string::npos);
  Value half = Value::map();
  half.set("out", 3);
  EXPECT_NE(message_of<ConfigError>([&] { read<RankConfig>(half); }).find("name both modes"), std::string::npos);
  Value none = Value::map();
  none.set("params", 0);
  EXPECT_NE(message_of<ConfigError>([&] { read<RankConfig>(none); }), "");
}

}  // namespace
}  // namespace tessera::testing
