#include "bench/cases/tucker_cases.h"

#include <gtest/gtest.h>

#include "core/device/constant_weights.h"

namespace tessera::bench {
namespace {

constexpr TurnOptions kOnce{.rounds = 1, .seconds = 0};

// Notes under which promise it is run.
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

TEST(TuckerCases, OnlyInferenceRunsOnConstantWeights) {
  TuckerSides sides = make_sides({2, 32, 32, 9, 3}, {.out = 8, .in = 4});
  for (const Phase phase : {Phase::inference, Phase::training}) {
    SCOPED_TRACE(name_of(phase));
    const auto watched = std::make_shared<Watched>(make_sides(sides.shape, sides.ranks).tucker);
    sides.tucker = watched;
    const Value row = measure_phase(sides, phase, kOnce);
    EXPECT_GT(watched->runs, 0);
    EXPECT_EQ(watched->constant_runs, phase == Phase::inference ? watched->runs : 0);
    EXPECT_EQ(row.at("weights").as_string(), phase == Phase::inference ? "constant" : "changing");
    EXPECT_EQ(row.at("phase").as_string(), phase == Phase::inference ? "forward" : "training");
    EXPECT_EQ(row.at("parts").as_list().size(), 3u);
    for (const char* key : {"ratio", "blocked_ratio"}) EXPECT_GT(row.at(key).at("median").as_double(), 0) << key;
    const double rival = row.at("rival").at("ms").at("median").as_double();
    EXPECT_LE(rival, row.at("other_dense").at("ms").at("median").as_double());
    EXPECT_DOUBLE_EQ(row.at("ratio").at("median").as_double(), rival / row.at("tucker").at("ms").at("median").as_double());
    EXPECT_DOUBLE_EQ(row.at("flop_ratio").as_double(), 32.0 * 9 * 32 / (32 * 4 + 4 * 9 * 8 + 8 * 32));
  }
  EXPECT_EQ(ConstantWeights::current(), nullptr);
}

}  // namespace
}  // namespace tessera::bench
