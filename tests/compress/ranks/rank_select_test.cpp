#include "compress/ranks/rank_select.h"

#include <gtest/gtest.h>

#include <cmath>

#include "compress/formats/builtin.h"
#include "compress/ranks/evbmf.h"
#include "core/config/read.h"
#include "core/support/error.h"
#include "tests/support/message_of.h"

namespace tessera::testing {
namespace {

const Format& kTucker2 = format_named("tucker2");

std::vector<double> falling(std::int64_t count, double decay) {
  std::vector<double> values;
  for (std::int64_t i = 0; i < count; ++i) values.push_back(std::pow(decay, static_cast<double>(i)));
  return values;
}

// A 3x3 convolution whose singular values decay geometrically.
RankLayer layer(const std::string& path, std::int64_t out, std::int64_t in, std::int64_t pixels, double decay = 0.95) {
  return {.format = &kTucker2,
          .dense = {.path = path, .out = out, .in = in, .kernel = {3, 3}, .input = {pixels, 1}, .output = {pixels, 1}},
          .spectra = {falling(out, decay), falling(in, decay)}};
}

RankConfig explicit_ranks(std::int64_t out, std::int64_t in) { return {.explicit_ranks = {{"out", out}, {"in", in}}}; }
Ranks ranks_of(std::int64_t out, std::int64_t in) { return {{"out", out}, {"in", in}}; }

const std::vector<RankLayer> kNetwork{layer("a", 64, 64, 256), layer("b", 128, 64, 64, 0.9), layer("c", 128, 128, 64, 0.98),
                                      layer("d", 67, 31, 49)};

double kept_macs(std::span<const RankLayer> layers, const std::vector<RankChoice>& choices) {
  double kept = 0;
  double dense = 0;
  for (std::size_t i = 0; i < layers.size(); ++i) {
    const RankLayer& l = layers[i];
    kept += static_cast<double>(choices[i].ranks ? l.format->cost(l.dense, *choices[i].ranks).macs : l.dense.macs());
    dense += static_cast<double>(l.dense.macs());
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
    kept += static_cast<double>(kTucker2.cost(kNetwork[i].dense, *choices[i].ranks).parameters);
    dense += static_cast<double>(kNetwork[i].dense.parameters());
  }
  EXPECT_LE(kept / dense, 0.3);
  EXPECT_GT(kept / dense, 0.295);
}

TEST(RankSelect, PerLayerHoldsTheFractionInEachLayer) {
  const std::vector<RankChoice> choices = select_ranks({.macs = 0.4, .per = "layer"}, kNetwork);
  for (std::size_t i = 0; i < kNetwork.size(); ++i) {
    SCOPED_TRACE(kNetwork[i].dense.path);
    const double kept = kept_macs({&kNetwork[i], 1}, {choices[i]});
    EXPECT_LE(kept, 0.4);
    EXPECT_GT(kept, 0.35);
  }
}

TEST(RankSelect, FixedCostsCountInTheirTotals) {
  std::int64_t dense = 0;
  for (const RankLayer& l : kNetwork) dense += l.dense.macs();
  // The fixed cost equals that of all layers: keeping 0.7 of the total leaves 0.4 for the layers.
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
    ASSERT_TRUE(choices[i].ranks) << kNetwork[i].dense.path;
    const std::int64_t out = rank_of(*choices[i].ranks, "out");
    const std::int64_t in = rank_of(*choices[i].ranks, "in");
    EXPECT_TRUE(out % 16 == 0 || out == kNetwork[i].dense.out) << out;
    EXPECT_TRUE(in % 16 == 0 || in == kNetwork[i].dense.in) << in;
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
  one.spectra = {std::vector<double>(64, 1.0), std::vector<double>(64, 1.0)};
  EXPECT_EQ(*select_ranks({.energy = 0.25}, {&one, 1})[0].ranks, ranks_of(16, 16));
  EXPECT_EQ(*select_ranks({.energy = 0.26, .multiple_of = 8}, {&one, 1})[0].ranks, ranks_of(24, 24));
}

TEST(RankSelect, AnErrorIsSharedAmongTheSpectra) {
  RankLayer one = layer("a", 64, 64, 4);
  one.spectra = {std::vector<double>(64, 1.0), std::vector<double>(64, 1.0)};
  // 0.8^2 / 2 of 64 equal squares are 20.48, so that 20 may be dropped.
  EXPECT_EQ(*select_ranks({.error = 0.8}, {&one, 1})[0].ranks, ranks_of(44, 44));
  const Format& svd = format_named("svd");
  const std::vector<double> squares{10, 5, 4, 3, 2, 1};  // sum 25
  RankLayer linear{.format = &svd, .dense = {.path = "fc", .out = 6, .in = 100}};
  linear.spectra.emplace_back();
  for (const double square : squares) linear.spectra[0].push_back(std::sqrt(square));
  EXPECT_EQ(to_string(*select_ranks({.error = 0.35}, {&linear, 1})[0].ranks), "rank 4");  // 0.1225 * 25 = 3.06
  EXPECT_EQ(to_string(*select_ranks({.error = 0.34}, {&linear, 1})[0].ranks), "rank 5");  // 0.1156 * 25 = 2.89
}

TEST(RankSelect, VariationalBayesIsFollowedAsFarAsAsked) {
  const Format& svd = format_named("svd");
  RankLayer linear{.format = &svd, .dense = {.path = "fc", .out = 40, .in = 60}};
  // Two values rise above a floor that falls like that of noise.
  linear.spectra.push_back({90, 70});
  for (int i = 2; i < 40; ++i) linear.spectra[0].push_back(14.0 - 0.3 * i);
  ASSERT_EQ(evbmf_rank(linear.spectra[0], 40, 60), 2);
  EXPECT_EQ(to_string(*select_ranks({.vbmf = 1}, {&linear, 1})[0].ranks), "rank 2");
  EXPECT_EQ(to_string(*select_ranks({.vbmf = 0.9}, {&linear, 1})[0].ranks), "rank 6");  // 40 - 0.9 * 38 = 5.8
  EXPECT_EQ(to_string(*select_ranks({.vbmf = 0.9, .multiple_of = 4}, {&linear, 1})[0].ranks), "rank 8");
}

TEST(RankSelect, CpRefusesRulesOfSpectra) {
  for (const RankConfig& config : {RankConfig{.energy = 0.9}, RankConfig{.error = 0.1}, RankConfig{.vbmf = 1}}) {
    EXPECT_EQ(why_not_ranks_of(format_named("cp"), config),
              "cp has no spectra that say what a rank discards; ask for macs, params or explicit ranks");
  }
}

TEST(RankSelect, ALayerThatWouldNotGetCheaperStaysDense) {
  const std::vector<RankChoice> choices = select_ranks(explicit_ranks(60, 60), {kNetwork.data(), 1});
  EXPECT_FALSE(choices[0].ranks);
  EXPECT_EQ(choices[0].reason, "factored MACs 10260480 at ranks out 60 in 60 are not below dense 9437184");
  EXPECT_EQ(select_ranks({.macs = 1.0}, kNetwork)[0].ranks, std::nullopt);
}

TEST(RankSelect, ExplicitRanksNameLayerModeAndRange) {
  EXPECT_EQ(*select_ranks(explicit_ranks(30, 20), kNetwork)[2].ranks, ranks_of(30, 20));
  EXPECT_EQ(message_of<ConfigError>([] { select_ranks(explicit_ranks(64, 32), kNetwork); }),
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
  Value named = Value::map();
  named.set("in", 3);
  named.set("out", 4);
  EXPECT_EQ(read<RankConfig>(named).explicit_ranks, ranks_of(4, 3)) << "in the formats' order";
  EXPECT_EQ(to_json(write(read<RankConfig>(named))), R"({"out":4,"in":3,"per":"matched","multiple_of":1})");
  Value none = Value::map();
  none.set("params", 0);
  EXPECT_NE(message_of<ConfigError>([&] { read<RankConfig>(none); }), "");
}

TEST(RankSelect, ExplicitRanksAreTheFormatsOwn) {
  EXPECT_EQ(why_not_ranks_of(kTucker2, explicit_ranks(4, 3)), "");
  EXPECT_EQ(why_not_ranks_of(kTucker2, {.macs = 0.4}), "");
  EXPECT_EQ(why_not_ranks_of(kTucker2, {.explicit_ranks = {{"out", 4}}}),
            "explicit ranks of tucker2 name all of: out, in; e.g. {out: 32, in: 64}");
  EXPECT_EQ(why_not_ranks_of(kTucker2, {.explicit_ranks = {{"rank", 4}}}), "tucker2 has no rank 'rank'; it has: out, in");
  EXPECT_EQ(why_not_ranks_of(format_named("svd"), explicit_ranks(4, 3)), "svd has no rank 'out'; it has: rank");
}

TEST(RankSelect, RanksThatDoNotGoTogetherAreLowered) {
  // One tap: the core of a 1x1 kernel is a matrix, so its two ranks are equal.
  RankLayer one = layer("a", 64, 64, 4);
  one.dense.kernel = {1, 1};
  one.spectra = {falling(64, 0.99), falling(64, 0.5)};
  const std::vector<RankChoice> choices = select_ranks({.energy = 0.99}, {&one, 1});
  ASSERT_TRUE(choices[0].ranks) << choices[0].reason;
  EXPECT_EQ(rank_of(*choices[0].ranks, "out"), rank_of(*choices[0].ranks, "in"));
  EXPECT_EQ(message_of<ConfigError>([&] {
              select_ranks(explicit_ranks(8, 4), {&one, 1});
            }),
            "layer 'a': out rank is 8, more than the 1 taps times the in rank 4; no core has it");
}

// Two 48 -> 32 linear layers, of 7 rows and of 1. Each has one rank, and they share budgets.
TEST(RankSelect, AnyNumberOfRanks) {
  const Format& svd = format_named("svd");
  const auto linear = [&](std::int64_t rows, double decay) {
    return RankLayer{.format = &svd,
                     .dense = {.path = "fc", .out = 32, .in = 48, .input = {rows, 1}, .output = {rows, 1}},
                     .spectra = {falling(32, decay)}};
  };
  const std::vector<RankLayer> layers{linear(7, 0.9), linear(1, 0.97)};
  const std::vector<RankChoice> choices = select_ranks({.macs = 0.5}, layers);
  const double kept = kept_macs(layers, choices);
  EXPECT_LE(kept, 0.5);
  EXPECT_GT(kept, 0.45);
  EXPECT_EQ(*select_ranks({.explicit_ranks = {{"rank", 5}}}, layers)[0].ranks, (Ranks{{"rank", 5}}));
  EXPECT_EQ(message_of<ConfigError>([&] {
              select_ranks({.explicit_ranks = {{"rank", 33}}}, layers);
            }),
            "layer 'fc': rank is 33, the weight is 32 x 48; legal range is 1..32");
}

}  // namespace
}  // namespace tessera::testing
