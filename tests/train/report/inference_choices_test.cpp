#include "train/report/inference_choices.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "core/support/error.h"
#include "tests/support/message_of.h"
#include "tests/train/run/weights_files.h"
#include "train/run/decisions_file.h"
#include "train/run/saved_use.h"

namespace tessera {
namespace {

const Shape kInput{1, 14, 14, 16};

std::unique_ptr<Module> network() {
  auto model = build_model(testing::layers_config(R"([
      {"conv2d": {"out": 32, "kernel": 3, "padding": 1, "bias": false, "name": "conv"}}, {"batch_norm": {"name": "bn"}}, "relu",
      "global_avg_pool", {"linear": {"out": 5, "name": "fc"}}])"),
                           kInput);
  testing::randomise(*model);
  return model;
}

std::set<std::string> keys_of(const NetworkUse& use) {
  std::set<std::string> keys;
  for (const auto& [key, choice] : decisions_of(use)) keys.insert(key);
  return keys;
}

std::int64_t forwards_of_batch(const NetworkUse& use, const std::string& batch) {
  return std::ranges::count_if(keys_of(use), [&](const std::string& key) {
    return key.starts_with("conv2d.forward") && key.find(" n" + batch + " ") != std::string::npos;
  });
}

TEST(InferenceChoices, AreOfTheBatchesThatAreAskedFor) {
  NetworkUse use;
  const std::vector<std::int64_t> batches{4, 9};
  add_inference_choices(use, *network(), kInput, batches);
  EXPECT_EQ(forwards_of_batch(use, "4"), 1) << to_json(use.decisions);
  EXPECT_EQ(forwards_of_batch(use, "9"), 1) << to_json(use.decisions);
  EXPECT_EQ(forwards_of_batch(use, "1"), 0) << to_json(use.decisions);
}

TEST(InferenceChoices, LeaveThoseThatAreThere) {
  NetworkUse use;
  const std::vector<std::int64_t> first{4}, both{4, 9};
  add_inference_choices(use, *network(), kInput, first);
  DecisionMap known = decisions_of(use);
  ASSERT_FALSE(known.empty());
  known.emplace("conv2d.forward of another shape", "direct");
  use.decisions = to_value(known);
  add_inference_choices(use, *network(), kInput, both);
  const DecisionMap all = decisions_of(use);
  for (const auto& [key, choice] : known) EXPECT_EQ(all.at(key), choice) << key;
  EXPECT_GT(all.size(), known.size());
}

TEST(InferenceChoices, NeedAPrecisionOfTheCpu) {
  NetworkUse use{.task = "classification", .precision = "f16"};
  const std::vector<std::int64_t> batches{1};
  const std::string message = message_of<ConfigError>([&] { add_inference_choices(use, *network(), kInput, batches); });
  EXPECT_NE(message.find("f16 is not supported on cpu"), std::string::npos) << message;
}

}  // namespace
}  // namespace tessera
