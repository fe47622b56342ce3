// The cases of linalg_bench at sizes of which a clock says nothing.
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
    ++kinds[of.kind];
  }
  EXPECT_EQ(kinds, (std::map<std::string, int>{{"gemm", 3}, {"batched", 6}, {"exceptional", 3}}));
}

TEST(SvdCases, HaveTheSpectraThatTheirNamesSay) {
  const std::vector<double> power = linalg::svd(make_matrix({13, 3, "power"}).to(DType::f64)).s.to_vector<double>();
  for (std::size_t k = 0; k < power.size(); ++k) EXPECT_NEAR(power[k], 1.0 / static_cast<double>(k + 1), 1e-6);
  const std::vector<double> flat = linalg::svd(make_matrix({64, 3, "flat"}).to(DType::f64)).s.to_vector<double>();
  EXPECT_LT(flat[0], 2 * flat[15]);
}

}  // namespace
}  // namespace tessera::bench
