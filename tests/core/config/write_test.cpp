#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "tests/core/config/blocks.h"
#include "tests/core/config/values.h"

namespace tessera {
namespace {

using namespace test;

TEST(Write, KeepsTheOrderOfTheDescription) {
  EXPECT_EQ(to_json(write(Experiment{})),
            R"({"seed":1,"precision":"f32","crop":1,"mean":[],"devices":["cpu"],)"
            R"("optimizer":{"name":"sgd","lr":0.1,"momentum":0.0,"nesterov":false},)"
            R"("stages":[{"name":"default","train":"3e"}],"extra":null})");
}

TEST(Write, GivesNullForANullableKeyThatIsEmptyAndNothingForAnother) {
  EXPECT_EQ(to_json(write(Measured{})),
            R"({"samples":0,"right":0,"accuracy":null,"loss":null,"optimizer":null,"passes":null})");
}

TEST(Write, GivesNullableAndComputedKeysTheirValues) {
  EXPECT_EQ(
      to_json(write(Measured{.samples = 4, .right = 3, .loss = 0.5, .optimizer = Sgd{}, .passes = {{Admm{}}}, .note = "x"})),
      R"({"samples":4,"right":3,"accuracy":0.75,"loss":0.5,)"
      R"("optimizer":{"lr":0.1,"momentum":0.0,"nesterov":false},)"
      R"("passes":[{"layers":"*","ranks":[8],"rho":0.001}],"note":"x"})");
}

Experiment any_experiment() {
  Experiment experiment;
  experiment.seed = *rc::gen::inRange<std::int64_t>(0, INT64_MAX);
  experiment.precision = *rc::gen::element<std::string>("f32", "tf32", "bf16");
  experiment.crop = {*rc::gen::inRange(1, 5), *rc::gen::inRange(1, 5)};
  experiment.mean.assign(*rc::gen::inRange<std::size_t>(0, 4), 1.0 / *rc::gen::inRange(1, 100));
  if (*rc::gen::arbitrary<bool>()) experiment.optimizer.algorithm = Adamw{1.0 / *rc::gen::inRange(1, 100), 0.5};
  if (*rc::gen::arbitrary<bool>()) experiment.optimizer.clip = 1.0 / *rc::gen::inRange(1, 100);
  experiment.stages.clear();
  for (int i = *rc::gen::inRange(0, 4); i > 0; --i) {
    Stage stage{*any_text(), Duration::steps(*rc::gen::inRange(0, 1000)), std::nullopt};
    if (*rc::gen::arbitrary<bool>()) stage.admm = Admm{*any_text(), {1, *rc::gen::inRange(1, 9)}, 0.25};
    experiment.stages.push_back(stage);
  }
  experiment.extra = any_value(2);
  return experiment;
}

RC_GTEST_PROP(Write, ReadGivesAnEqualBlock, ()) {
  const Experiment experiment = any_experiment();
  RC_ASSERT(read<Experiment>(write(experiment)) == experiment);
  RC_ASSERT(read<Experiment>(json(to_json(write(experiment)))) == experiment);
}

Measured any_measured() {
  Measured measured;
  measured.samples = *rc::gen::inRange(0, 4);
  measured.right = *rc::gen::inRange<std::int64_t>(0, measured.samples + 1);
  if (*rc::gen::arbitrary<bool>()) measured.loss = 1.0 / *rc::gen::inRange(1, 100);
  if (*rc::gen::arbitrary<bool>()) measured.optimizer = Sgd{.momentum = 0.5};
  if (*rc::gen::arbitrary<bool>()) measured.passes.emplace(*rc::gen::inRange<std::size_t>(0, 3), Admm{});
  if (*rc::gen::arbitrary<bool>()) measured.note = *any_text();
  return measured;
}

RC_GTEST_PROP(Write, ReadGivesAnEqualBlockOfNullableAndComputedKeys, ()) {
  const Measured measured = any_measured();
  RC_ASSERT(read<Measured>(write(measured)) == measured);
  RC_ASSERT(read<Measured>(json(to_json(write(measured)))) == measured);
}

}  // namespace
}  // namespace tessera
