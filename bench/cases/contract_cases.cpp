#include "bench/cases/contract_cases.h"

#include <memory>

#include "core/linalg/contract.h"
#include "core/rng.h"
#include "core/support/error.h"

namespace tessera::bench {
namespace {

constexpr double kAgreement = 1e-4;  // of the largest value: sums of 8 to 256 products in another order

Tensor normal(const Shape& shape, const char* name) {
  const Tensor x = Tensor::empty(shape);
  fill_normal(x, RngStream(1, "contract", name), 0, 1);
  return x;
}

Shape cube(const std::string& labels, std::int64_t size) {
  return Shape(std::span<const std::int64_t>(std::vector<std::int64_t>(labels.size(), size)));
}

struct Labels {
  std::string a, b, y;
};

Labels labels_of(const std::string& equation) {
  const std::size_t comma = equation.find(','), arrow = equation.find("->");
  return {equation.substr(0, comma), equation.substr(comma + 1, arrow - comma - 1), equation.substr(arrow + 2)};
}

Tensor permuted(const Tensor& x, const std::string& from, const std::string& to) {
  std::vector<int> axes;
  for (const char label : to) axes.push_back(static_cast<int>(from.find(label)));
  return x.permute(axes);
}

// What a library does that has a GEMM only. A transposed matrix is no copy, and neither is an order that the operand has already.
class Copying {
 public:
  explicit Copying(const std::string& equation) : labels_(labels_of(equation)) {
    for (const char label : labels_.y) (labels_.a.find(label) != std::string::npos ? free_a_ : free_b_) += label;
    for (const char label : labels_.a) {
      if (labels_.y.find(label) == std::string::npos) inner_ += label;
    }
  }

  Tensor run(const Tensor& a, const Tensor& b) {
    copies_ = 0;
    const Tensor left = permuted(a, labels_.a, free_a_ + inner_);  // a matrix as it is
    // Both orders of the matrix are as good for a GEMM.
    const std::string rows = inner_ + free_b_, columns = free_b_ + inner_;
    const std::string order = permuted(b, labels_.b, columns).is_contiguous() ? columns : rows;
    const Tensor right = counted(permuted(b, labels_.b, order));
    const std::int64_t k = right.dim(order == rows ? 0 : -1), free = right.numel() / k;
    const Tensor matrix = order == rows ? right.reshape({k, free}) : right.reshape({free, k}).permute({1, 0});
    // The result's order as it is asked for, where its indices lie so.
    if (labels_.y == free_b_ + free_a_) {
      return linalg::contract("kn,mk->nm", matrix, left).reshape(shape_of(a, b));
    }
    const Tensor product = linalg::contract("mk,kn->mn", left, matrix);
    std::vector<std::int64_t> sizes;
    for (const char label : free_a_ + free_b_) sizes.push_back(size(a, b, label));
    return counted(permuted(product.reshape(Shape(std::span<const std::int64_t>(sizes))), free_a_ + free_b_, labels_.y));
  }

  std::int64_t copies() const { return copies_; }

 private:
  Tensor counted(const Tensor& x) {
    if (!x.is_contiguous()) ++copies_;
    return x.contiguous();
  }

  std::int64_t size(const Tensor& a, const Tensor& b, char label) const {
    const std::size_t axis = labels_.a.find(label);
    return axis != std::string::npos ? a.dim(static_cast<int>(axis)) : b.dim(static_cast<int>(labels_.b.find(label)));
  }

  Shape shape_of(const Tensor& a, const Tensor& b) const {
    std::vector<std::int64_t> sizes;
    for (const char label : labels_.y) sizes.push_back(size(a, b, label));
    return Shape(std::span<const std::int64_t>(sizes));
  }

  Labels labels_;
  std::string free_a_, free_b_, inner_;
  std::int64_t copies_ = 0;
};

Value timed(const std::string& name, const Samples& samples) {
  Value row = Value::map();
  row.set("name", name);
  row.set("ms", to_value(summarise(samples)));
  return row;
}

}  // namespace

std::vector<ContractCase> contract_cases() {
  return {{"gemm", "km,pnk->pnm"},        {"gemm", "mk,kpn->pnm"},        {"gemm", "kp,knm->pnm"},
          {"batched", "km,pkn->pnm"},     {"batched", "mk,nkp->pnm"},     {"batched", "km,npk->pnm"},
          {"batched", "kn,pmk->pnm"},     {"batched", "nk,pkm->pnm"},     {"batched", "kp,mnk->pnm"},
          {"exceptional", "kn,mkp->pnm"}, {"exceptional", "nk,kmp->pnm"}, {"exceptional", "kp,mkn->pnm"}};
}

Value measure_contract(const ContractCase& of, std::int64_t size, const TurnOptions& turns) {
  const Labels labels = labels_of(of.equation);
  const Tensor a = normal(cube(labels.a, size), "a"), b = normal(cube(labels.b, size), "b");
  const auto y = std::make_shared<Tensor>(), other = std::make_shared<Tensor>();
  const auto copying = std::make_shared<Copying>(of.equation);
  const std::vector<Contestant> sides{{"contract", [=] { *y = linalg::contract(of.equation, a, b); }, {}, [=] { return *y; }},
                                      {"copies and one GEMM", [=] { *other = copying->run(a, b); }, {}, [=] { return *other; }}};
  check_agreement(
      sides, [=] { *y = *other = {}; }, kAgreement);
  const linalg::ContractPlan plan = linalg::plan_contract(of.equation, a, b);
  const char* const kind = plan.copies > 0 ? "exceptional" : plan.one_gemm() ? "gemm" : "batched";
  TESSERA_CHECK(of.kind == kind, InternalError, "contract ", of.equation, " is planned as ", plan.text, "; expected ", of.kind);
  const std::vector<Samples> samples = time_in_turns(sides, turns);
  Value row = Value::map();
  row.set("op", "contract");
  row.set("equation", of.equation);
  row.set("kind", of.kind);
  row.set("size", size);
  row.set("plan", plan.text);
  row.set("rounds", turns.rounds);
  row.set("contract", timed(sides[0].name, samples[0]));
  row.set("rival", timed(sides[1].name, samples[1]));
  row.set("copies", copying->copies());
  row.set("ratio", to_value(summarise(ratios(samples[1], samples[0]))));
  return row;
}

}  // namespace tessera::bench
