#include "bench/cases/factored_cases.h"

#include <gtest/gtest.h>

#include "core/device/constant_weights.h"

namespace tessera::bench {
namespace {

constexpr TurnOptions kOnce{.rounds = 1, .seconds = 0};

// Counts its runs, and those under the promise of constant weights.
class Watched final : public Module {
 public:
  explicit Watched(std::shared_ptr<Module> inner) : inner_(std::move(inner)) {}
  std::string_view kind() const override { return "watched"; }
  Value config() const override { return Value::map(); }
  Var forward(const Var& x, const Context& context) override {
    ++runs;
    if (ConstantWeights::current() != nullptr) ++constant_runs;
    return inner_->forward(x, context);
  }
  Shape output_shape(const Shape& input, Trace* trace) const override { return inner_->output_shape(input, trace); }

  int runs = 0;
  int constant_runs = 0;

 private:
  std::shared_ptr<Module> inner_;
};

TEST(FactoredCases, OnlyInferenceRunsOnConstantWeights) {
  FactoredSides sides = make_sides({"tucker2", {{"out", 8}, {"in", 4}}, ConvShape{2, 32, 32, 9, 3}});
  for (const Phase phase : {Phase::inference, Phase::training}) {
    SCOPED_TRACE(name_of(phase));
    const auto watched = std::make_shared<Watched>(make_sides(sides.of).factored);
    sides.factored = watched;
    const Value row = measure_phase(sides, phase, kOnce);
    EXPECT_GT(watched->runs, 0);
    EXPECT_EQ(watched->constant_runs, phase == Phase::inference ? watched->runs : 0);
    EXPECT_EQ(row.at("weights").as_string(), phase == Phase::inference ? "constant" : "changing");
    EXPECT_EQ(row.at("phase").as_string(), phase == Phase::inference ? "forward" : "training");
    EXPECT_EQ(row.at("format").as_string(), "tucker2");
    EXPECT_EQ(row.at("ranks").as_string(), "out 8 in 4");
    for (const char* key : {"ratio", "blocked_ratio"}) EXPECT_GT(row.at(key).at("median").as_double(), 0) << key;
    const double rival = row.at("rival").at("ms").at("median").as_double();
    EXPECT_LE(rival, row.at("other_dense").at("ms").at("median").as_double());
    EXPECT_DOUBLE_EQ(row.at("ratio").at("median").as_double(), rival / row.at("factored").at("ms").at("median").as_double());
    EXPECT_DOUBLE_EQ(row.at("flop_ratio").as_double(), 32.0 * 9 * 32 / (32 * 4 + 4 * 9 * 8 + 8 * 32));
  }
  EXPECT_EQ(ConstantWeights::current(), nullptr);
}

TEST(FactoredCases, EveryFormatIsTimedBesideItsDenseLayerAndItsSteps) {
  const ConvShape conv{2, 32, 32, 9, 3};
  const LinearShape linear{5, 32, 48};  // a train of ranks 2: 4 * 2 * 12 * (8 + 4) of 1536 multiply-adds
  const std::pair<FactoredCase, std::size_t> cases[]{
      {{"tucker2", {{"out", 8}, {"in", 4}}, conv}, 3},
      {{"spatial_svd", {{"rank", 8}}, conv}, 2},
      {{"cp", {{"rank", 8}}, conv}, 4},
      {{"tt", {{"r1", 4}, {"r2", 8}, {"r3", 8}, {"r4", 4}}, conv}, 3},
      {{"svd", {{"rank", 8}}, linear}, 2},
      {{"tt", {{"r1", 2}, {"r2", 2}}, linear, ModesConfig{.out = {4, 4, 3}, .in = {4, 4, 2}}}, 4}};
  for (const auto& [of, parts] : cases) {
    SCOPED_TRACE(of.format);
    for (const Phase phase : {Phase::inference, Phase::training}) {
      const Value row = measure_phase(make_sides(of), phase, kOnce);
      const Value::List& steps = row.at("parts").as_list();
      ASSERT_EQ(steps.size(), parts);
      // With one round the median is that round's time. A linear train has two orders of its products.
      const Value::List& floors = row.at("floors").as_list();
      ASSERT_EQ(floors.size(), of.modes ? 2u : 1u);
      EXPECT_EQ(floors.front().at("name").as_string(), of.modes ? "floor, right-first" : "floor");
      EXPECT_EQ(floors.back().at("name").as_string(), of.modes ? "floor, left-first" : "floor");
      const std::size_t each = parts / floors.size();
      for (std::size_t i = 0; i < floors.size(); ++i) {
        double sum = 0;
        for (std::size_t k = i * each; k < (i + 1) * each; ++k) sum += steps[k].at("ms").at("median").as_double();
        EXPECT_NEAR(floors[i].at("ms").at("median").as_double(), sum, 1e-9 * sum);
      }
      EXPECT_GT(row.at("ratio").at("median").as_double(), 0);
      EXPECT_GT(row.at("flop_ratio").as_double(), 1);
      EXPECT_EQ(row.find("blocked_ratio") != nullptr, std::holds_alternative<ConvShape>(of.shape));
    }
  }
}

}  // namespace
}  // namespace tessera::bench
