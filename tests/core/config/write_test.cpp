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

}  // namespace
}  // namespace tessera
