#include "bench/cases/compared_networks.h"

#include <gtest/gtest.h>

#include <cmath>

#include "bench/result_lines.h"
#include "compress/patterns/builtin.h"
#include "core/rng.h"
#include "core/support/error.h"
#include "layers/linear.h"
#include "tests/support/message_of.h"

namespace tessera::bench {
namespace {

std::int64_t ones_of(const Tensor& mask) {
  std::int64_t count = 0;
  for (std::int64_t i = 0; i < mask.numel(); ++i) count += mask.data<std::uint8_t>()[i];
  return count;
}

TEST(ComparedNetworks, MasksAreOfTheDensityAndOfThePath) {
  Linear first({.in = 11, .out = 7}), second({.in = 11, .out = 7}), other({.in = 11, .out = 7});
  const std::unique_ptr<const Pattern> pattern = make_pattern({.pattern = "unstructured"});
  EXPECT_EQ(mask_randomly(first.weight(), "fc", *pattern, 0.25), 19);
  mask_randomly(second.weight(), "fc", *pattern, 0.25);
  mask_randomly(other.weight(), "fc2", *pattern, 0.25);
  EXPECT_EQ(ones_of(first.weight().mask()), 19);
  EXPECT_EQ(first.weight().mask().to_vector<std::uint8_t>(), second.weight().mask().to_vector<std::uint8_t>());
  EXPECT_NE(first.weight().mask().to_vector<std::uint8_t>(), other.weight().mask().to_vector<std::uint8_t>());
}

SelfTimed taking(double ms) {
  return [ms](std::int64_t count) { return std::vector<double>(static_cast<std::size_t>(count), ms); };
}

TEST(ComparedNetworks, ARowHasBothTimesAndTheDenseOverTheCompressed) {
  const Measured measured = measure_in_turn({"small", 1e-4, {taking(20), taking(50)}}, 3);
  Value row = Value::map();
  set_measured(row, "ours", measured, 2.0);
  EXPECT_EQ(row.at("rounds").as_int(), 3);
  EXPECT_EQ(row.at("factored").at("name").as_string(), "ours");
  EXPECT_EQ(row.at("factored").at("ms").at("median").as_double(), 20);
  EXPECT_EQ(row.at("rival").at("ms").at("median").as_double(), 50);
  EXPECT_EQ(row.at("ratio").at("median").as_double(), 2.5);
  for (const auto& [side, ms] : {std::pair("factored", 20.0), std::pair("rival", 50.0)}) {
    EXPECT_EQ(numbers(row.at(side).at("ms").at("rounds")), std::vector<double>(3, ms));
    EXPECT_EQ(row.at(side).at("ms").at("alone").as_double(), ms);
  }
  EXPECT_EQ(row.at("agreement").as_double(), 1e-4);
  ::testing::internal::CaptureStdout();
  print_measured("small", row);
  EXPECT_EQ(::testing::internal::GetCapturedStdout(),
            "small: 20.000 ms, dense 50.000 ms, 2.50x (2.50-2.50), of medians 2.50x; target 2x: met\n");
}

TEST(ComparedNetworks, AnotherFunctionIsNotTimed) {
  int timed = 0;
  const SelfTimed counted = [&](std::int64_t count) {
    ++timed;
    return std::vector<double>(static_cast<std::size_t>(count), 1);
  };
  for (const double difference : {0.25, static_cast<double>(INFINITY), std::nan("")}) {
    EXPECT_THROW(measure_in_turn({"small", difference, {counted, counted}}, 3), NumericError) << difference;
  }
  EXPECT_EQ(message_of<NumericError>([&] {
              measure_in_turn({"small", 0.25, {counted, counted}}, 3);
            }),
            "small: differs from the dense network of the same function by 0.25 of the largest value; 0.001 is allowed");
  EXPECT_EQ(timed, 0);
}

}  // namespace
}  // namespace tessera::bench
