#include "bench/cases/contract_cases.h"

#include <limits>
#include <map>
#include <memory>
#include <span>

#include "bench/cases/memory_cases.h"
#include "bench/rivals/permute_rival.h"
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

// "201" of "abc" to "cab".
std::string order_of(const std::string& from, const std::string& to) {
  std::string order;
  for (const char label : to) order += str(from.find(label));
  return order;
}

Tensor permuted(const Tensor& x, const std::string& order) {
  std::vector<int> axes;
  for (const char axis : order) axes.push_back(axis - '0');
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
    copied_.clear();
    const Tensor left = permuted(a, order_of(labels_.a, free_a_ + inner_));  // a matrix as it is
    // Both orders of the matrix are as good for a GEMM.
    const std::string rows = inner_ + free_b_, columns = free_b_ + inner_;
    const bool as_columns = permuted(b, order_of(labels_.b, columns)).is_contiguous();
    const Tensor right = copied(b, order_of(labels_.b, as_columns ? columns : rows));
    const std::int64_t k = right.dim(as_columns ? -1 : 0), free = right.numel() / k;
    const Tensor matrix = !as_columns ? right.reshape({k, free}) : right.reshape({free, k}).permute({1, 0});
    // The result's order as it is asked for, where its indices lie so.
    if (labels_.y == free_b_ + free_a_) {
      return linalg::contract("kn,mk->nm", matrix, left).reshape(shape_of(a, b));
    }
    const Tensor product = linalg::contract("mk,kn->mn", left, matrix);
    std::vector<std::int64_t> sizes;
    for (const char label : free_a_ + free_b_) sizes.push_back(size(a, b, label));
    return copied(product.reshape(Shape(std::span<const std::int64_t>(sizes))), order_of(free_a_ + free_b_, labels_.y));
  }

  const std::vector<std::string>& orders() const { return copied_; }  // of the copies of the last run

 private:
  // Into memory that is kept from call to call.
  Tensor copied(const Tensor& x, const std::string& order) {
    const Tensor view = permuted(x, order);
    if (view.is_contiguous()) return view;
    copied_.push_back(order);
    Tensor& copy = kept_[copied_.size()];
    if (!copy.defined() || copy.shape() != view.shape()) copy = Tensor::empty(view.shape());
    permute_into(view, copy);
    return copy;
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
  std::vector<std::string> copied_;
  std::map<std::size_t, Tensor> kept_;
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

std::set<std::string> copied_orders() {
  std::set<std::string> orders;
  for (const ContractCase& of : contract_cases()) {
    const Labels labels = labels_of(of.equation);
    Copying copying(of.equation);
    copying.run(normal(cube(labels.a, 2), "a"), normal(cube(labels.b, 2), "b"));
    orders.insert(copying.orders().begin(), copying.orders().end());
  }
  return orders;
}

Value measure_permute(const std::string& order, std::int64_t size, std::int64_t megabytes, const TurnOptions& turns) {
  const Tensor x = normal(cube(order, size), "x"), y = Tensor::zeros(x.shape());
  const Tensor view = permuted(x, order);
  const Contestant copy{"permute", [=] { permute_into(view, y); }, {}, [=] { return y; }};
  check_agreement(
      std::vector<Contestant>{{"the view", [] {}, {}, [=] { return view.contiguous(); }}, copy},
      [=] { y.fill(std::numeric_limits<double>::quiet_NaN()); }, 0);
  return measure_memory({"permute", order, str(x.shape()), 2 * static_cast<double>(x.bytes()), copy}, megabytes, turns);
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
  row.set("copies", static_cast<std::int64_t>(copying->orders().size()));
  row.set("permutes", Value::list(Value::List(copying->orders().begin(), copying->orders().end())));
  row.set("ratio", to_value(summarise(ratios(samples[1], samples[0]))));
  return row;
}

}  // namespace tessera::bench
