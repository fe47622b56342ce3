// The cases of linalg_bench at sizes too small for a clock.
#include <gtest/gtest.h>

#include <map>

#include "bench/cases/contract_cases.h"
#include "bench/cases/svd_cases.h"
#include "core/linalg/svd.h"

namespace tessera::bench {
namespace {

// measure_contract itself compares the two sides, and the plan with the kind.
TEST(ContractCases, AreOfEveryKindAndAgree) {
  std::map<std::string, int> kinds;
  for (const ContractCase& of : contract_cases()) {
    SCOPED_TRACE(of.equation);
    const Value row = measure_contract(of, 3, {.rounds = 2, .seconds = 1e-6});
    EXPECT_EQ(row.at("equation").as_string(), of.equation);
    EXPECT_GT(row.at("ratio").at("median").as_double(), 0);
    EXPECT_EQ(row.at("copies").as_int() == 0, of.kind == "gemm");
    EXPECT_EQ(row.at("permutes").as_list().size(), static_cast<std::size_t>(row.at("copies").as_int()));
    ++kinds[of.kind];
  }
  EXPECT_EQ(kinds, (std::map<std::string, int>{{"gemm", 3}, {"batched", 6}, {"exceptional", 3}}));
}

TEST(ContractCases, EveryOrderThatTheRivalCopiesInIsHeldAgainstStreaming) {
  EXPECT_EQ(copied_orders(), (std::set<std::string>{"021", "102", "120", "210"}));
  for (const std::string& order : copied_orders()) {
    const Value row = measure_permute(order, 9, 1, {.rounds = 2, .seconds = 1e-6});
    EXPECT_EQ(row.at("op").as_string(), "permute");
    EXPECT_EQ(row.at("pass").as_string(), order);
    EXPECT_EQ(row.at("bytes").as_double(), 2.0 * 9 * 9 * 9 * 4);
    EXPECT_GT(row.at("ratio").at("median").as_double(), 0);
  }
}

TEST(SvdCases, HaveTheSpectraThatTheirNamesSay) {
  const std::vector<double> power = linalg::svd(make_matrix({13, 3, "power"}).to(DType::f64)).s.to_vector<double>();
  for (std::size_t k = 0; k < power.size(); ++k) EXPECT_NEAR(power[k], 1.0 / static_cast<double>(k + 1), 1e-6);
  const std::vector<double> flat = linalg::svd(make_matrix({64, 3, "flat"}).to(DType::f64)).s.to_vector<double>();
  EXPECT_LT(flat[0], 2 * flat[15]);
}

}  // namespace
}  // namespace tessera::bench
