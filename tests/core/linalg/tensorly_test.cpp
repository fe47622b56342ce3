// Our decompositions against TensorLy's of the same tensors: tests/oracle/tensorly_fixtures.py wrote tests/oracle/tensorly.json.
#include <gtest/gtest.h>

#include "core/config/value.h"
#include "core/io/vfs.h"
#include "core/linalg/cp.h"
#include "core/linalg/relative_error.h"
#include "core/linalg/svd.h"
#include "core/linalg/tt.h"
#include "core/linalg/tucker.h"
#include "tests/core/linalg/linalg_support.h"

namespace tessera::testing {
namespace {

constexpr double kReconstruction = 1e-10;  // entries are about 10, written with 12 decimals

const Value::List& cases(std::string_view decomposition) {
  static const Value fixtures =
      parse_json(real_vfs().read_file(TESSERA_ORACLE_FOLDER "/tensorly.json"), TESSERA_ORACLE_FOLDER "/tensorly.json");
  const Value::List& found = fixtures.at(decomposition).as_list();
  EXPECT_FALSE(found.empty());
  return found;
}

std::vector<double> numbers(const Value& list) {
  std::vector<double> found;
  for (const Value& number : list.as_list()) found.push_back(number.as_double());
  return found;
}

template <class Integer = std::int64_t>
std::vector<Integer> integers(const Value& list) {
  std::vector<Integer> found;
  for (const Value& number : list.as_list()) found.push_back(static_cast<Integer>(number.as_int()));
  return found;
}

Shape shape_of(const Value& fixture) {
  const std::vector<std::int64_t> sizes = integers(fixture.at("shape"));
  return Shape(std::span<const std::int64_t>(sizes));
}

Tensor tensor_of(const Value& fixture, const char* key = "tensor") {
  return Tensor::from(numbers(fixture.at(key)), shape_of(fixture));
}

linalg::Cp start_of(const Value& fixture) {
  const std::int64_t rank = fixture.at("rank").as_int();
  linalg::Cp start;
  for (const Value& factor : fixture.at("start").as_list()) {
    const std::vector<double> entries = numbers(factor);
    start.factors.push_back(Tensor::from(entries, {std::ssize(entries) / rank, rank}));
  }
  return start;
}

TEST(TensorLy, TruncatedSvdsAreTheSame) {
  for (const Value& fixture : cases("svd")) {
    SCOPED_TRACE(str(shape_of(fixture)));
    const linalg::Svd svd = linalg::svd(tensor_of(fixture));
    const std::int64_t rank = fixture.at("rank").as_int();
    const Tensor u = svd.u.slice(1, 0, rank), s = svd.s.slice(0, 0, rank), v = svd.v.slice(1, 0, rank);
    EXPECT_LT(largest_difference(s, Tensor::from(numbers(fixture.at("values")), {rank})), kReconstruction);
    const Tensor composed = naive_matmul(scale_columns(u, s), v.permute({1, 0}));
    EXPECT_LT(largest_difference(composed, tensor_of(fixture, "reconstruction")), kReconstruction);
  }
}

TEST(TensorLy, TensorTrainsAreTheSame) {
  for (const Value& fixture : cases("tt")) {
    SCOPED_TRACE(str(shape_of(fixture)));
    const linalg::TensorTrain train = linalg::tt_svd(tensor_of(fixture), integers(fixture.at("ranks")));
    EXPECT_LT(largest_difference(linalg::reconstruct(train), tensor_of(fixture, "reconstruction")), kReconstruction);
  }
}

// The same algorithm from the same start: each sweep gives the same subspaces.
TEST(TensorLy, HooiHasTheSameErrorAfterEverySweep) {
  for (const Value& fixture : cases("hooi")) {
    SCOPED_TRACE(str(shape_of(fixture)));
    const Tensor x = tensor_of(fixture);
    const std::vector<double> errors = numbers(fixture.at("errors"));
    for (std::size_t sweeps = 0; sweeps < errors.size(); ++sweeps) {
      const linalg::HooiOptions options{.max_iterations = static_cast<std::int64_t>(sweeps), .tolerance = 0};
      const linalg::Tucker tucker = linalg::hooi(x, integers<int>(fixture.at("modes")), integers(fixture.at("ranks")), options);
      EXPECT_NEAR(linalg::relative_error(linalg::reconstruct(tucker), x), errors[sweeps], 1e-8) << sweeps << " sweeps";
    }
  }
}

// Both first fit the last factor to the start's others. Ours then keeps each factor near the previous one with a weight of 1e-9,
// theirs does not. The effect grows with the condition of the systems, to at most 1.2e-6 of the tensor's norm here.
TEST(TensorLy, CpHasTheSameErrorAfterEverySweep) {
  for (const Value& fixture : cases("cp")) {
    SCOPED_TRACE(str(shape_of(fixture), " rank ", fixture.at("rank").as_int()));
    const Tensor x = tensor_of(fixture);
    const linalg::Cp start = start_of(fixture);
    const auto error_after = [&](std::int64_t sweeps) {
      const linalg::CpOptions options{.max_iterations = sweeps, .tolerance = 0};
      return linalg::relative_error(linalg::reconstruct(linalg::cp_als(x, fixture.at("rank").as_int(), options, &start)), x);
    };
    const std::vector<double> errors = numbers(fixture.at("errors"));
    for (std::size_t sweeps = 0; sweeps < errors.size(); ++sweeps) {
      EXPECT_NEAR(error_after(static_cast<std::int64_t>(sweeps)), errors[sweeps], 3e-6) << sweeps << " sweeps";
    }
    EXPECT_LE(error_after(fixture.at("sweeps").as_int()), 1.001 * fixture.at("final").as_double());
  }
}

}  // namespace
}  // namespace tessera::testing
