#include "bench/op_options.h"

#include <gtest/gtest.h>

#include "core/support/error.h"
#include "tests/support/message_of.h"

namespace tessera::bench {
namespace {

OpOptions asked(const char* only) {
  OpOptions options;
  options.megabytes = 1;
  options.only = only;
  return options;
}

TEST(OpOptions, WithoutOnlyEveryCaseIsChosenForTheOfficialFile) {
  const OpOptions options = asked("");
  const OpCases cases = chosen_cases(options);
  std::size_t dense = product_shapes().size();
  for (const ConvShape& shape : conv_shapes()) dense += passes_of(shape).size();
  EXPECT_EQ(cases.dense.size(), dense);
  EXPECT_EQ(cases.products.size(), product_shapes().size());
  EXPECT_EQ(cases.memory.size(), memory_cases(1).size());
  const CommonOptions to = destination(options.common, options.only, "official.jsonl");
  EXPECT_EQ(to.results, "official.jsonl");
  EXPECT_FALSE(to.dry_run);
}

TEST(OpOptions, OnlyChoosesByOpAndShape) {
  const OpCases relu = chosen_cases(asked("relu"));
  EXPECT_TRUE(relu.dense.empty());
  ASSERT_EQ(relu.memory.size(), 2u);
  EXPECT_EQ(relu.memory[0].make().op, "relu");
  const OpCases depthwise = chosen_cases(asked("depthwise"));
  EXPECT_EQ(depthwise.dense.size(), 9u);
  EXPECT_TRUE(depthwise.memory.empty());
  EXPECT_TRUE(depthwise.products.empty());
  const OpCases product = chosen_cases(asked("matmul 512x512x512"));
  EXPECT_EQ(product.dense.size(), 1u);
  EXPECT_EQ(product.products.size(), 1u);
}

TEST(OpOptions, OnlyThatMatchesNothingIsNamed) {
  const std::string message = message_of<ConfigError>([] { chosen_cases(asked("rleu")); });
  EXPECT_EQ(message,
            "op_bench: --only 'rleu' is in no op and shape; they read like 'conv2d 128x32x32x3 -> 16, 3x3' and "
            "'relu [512, 512]'");
}

TEST(OpOptions, APartOfTheOpsGoesOnlyToAFileThatIsNamed) {
  OpOptions options = asked("relu");
  EXPECT_TRUE(destination(options.common, options.only, "official.jsonl").dry_run);
  options.common.results = "mine.jsonl";
  const CommonOptions to = destination(options.common, options.only, "official.jsonl");
  EXPECT_EQ(to.results, "mine.jsonl");
  EXPECT_FALSE(to.dry_run);
  options.common.dry_run = true;
  EXPECT_TRUE(destination(options.common, options.only, "official.jsonl").dry_run);
}

}  // namespace
}  // namespace tessera::bench
