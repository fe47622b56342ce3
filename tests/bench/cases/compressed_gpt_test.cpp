#include "bench/cases/compressed_gpt.h"

#include <gtest/gtest.h>

#include "bench/named_workloads.h"
#include "core/support/error.h"
#include "tests/support/message_of.h"

namespace tessera::bench {
namespace {

const models::Gpt kSmall{.layers = 2, .width = 24, .heads = 3, .vocabulary = 31, .length = 400};

WorkloadConfig small_workload() {
  WorkloadConfig config = workload_named("gpt");
  config.model = "small";
  config.shape = "17 tokens";
  config.sample = {{"tokens", DType::i64, {17}, kSmall.vocabulary}, {"targets", DType::i64, {17}, kSmall.vocabulary}};
  config.build = [](const Shape& input) { return kSmall.build(input); };
  config.batch = 3;
  return config;
}

void expect_measured(const Value& row, const char* phase) {
  EXPECT_EQ(row.at("model").as_string(), "small");
  EXPECT_EQ(row.at("phase").as_string(), phase);
  EXPECT_EQ(row.at("rounds").as_int(), 1);
  EXPECT_GT(row.at("ratio").at("median").as_double(), 0);
  EXPECT_LE(row.at("agreement").as_double(), 1e-3);
}

// The outputs of either form are compared with those of the dense network before anything is timed.
TEST(CompressedGpt, EitherFormComputesWhatItsDenseNetworkDoes) {
  for (const char* const form : {"svd", "tile"}) {
    SCOPED_TRACE(form);
    expect_measured(measure_compressed_step(small_workload(), {form, 1}), "training");
    expect_measured(measure_compressed_decoding("small", kSmall, {form, 1}), "decoding");
  }
}

TEST(CompressedGpt, RefusesOtherForms) {
  EXPECT_EQ(message_of<ConfigError>([] { measure_compressed_step(small_workload(), {"cp"}); }),
            "--compressed is 'cp'; needs svd or tile");
}

}  // namespace
}  // namespace tessera::bench
