#include "bench/cases/contract_cases.h"

#include <algorithm>
#include <limits>
#include <memory>
#include <span>

#include "bench/cases/memory_cases.h"
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

// The permutation from one order of labels to another: "201" from "abc" to "cab".
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

// A contraction by a library that has only a GEMM. A transposed matrix needs no copy, and neither does an order that the operand
// already has. Everything that depends only on the equation and the shapes is settled before the clock runs.
class Copying {
 public:
  Copying(const std::string& equation, const Tensor& a, const Tensor& b) {
    const Labels labels = labels_of(equation);
    std::string free_a, free_b, inner;
    for (const char label : labels.y) (labels.a.find(label) != std::string::npos ? free_a : free_b) += label;
    for (const char label : labels.a) {
      if (labels.y.find(label) == std::string::npos) inner += label;
    }
    const auto sizes = [&](const std::string& of) {
      std::vector<std::int64_t> found;
      for (const char label : of) {
        const std::size_t axis = labels.a.find(label);
        found.push_back(axis != std::string::npos ? a.dim(static_cast<int>(axis))
                                                  : b.dim(static_cast<int>(labels.b.find(label))));
      }
      return Shape(std::span<const std::int64_t>(found));
    };
    left_ = permuted(a, order_of(labels.a, free_a + inner));  // a matrix already, so it is not copied
    // A GEMM takes both orders of the matrix equally well.
    as_columns_ = labels.b == free_b + inner;
    right_order_ = order_of(labels.b, as_columns_ ? labels.b : inner + free_b);
    right_ = permuted(b, right_order_);
    const std::int64_t k = left_.dim(-1), free = b.numel() / k;
    matrix_ = as_columns_ ? Shape{free, k} : Shape{k, free};
    // Swapping the operands gives the requested order if it is free_b, free_a. Otherwise the product is permuted.
    swapped_ = labels.y == free_b + free_a;
    product_ = sizes(swapped_ ? labels.y : free_a + free_b);
    result_order_ = swapped_ ? "" : order_of(free_a + free_b, labels.y);
  }

  Tensor run() {
    const Tensor right = copied(right_, right_copy_).reshape(matrix_);
    const Tensor matrix = as_columns_ ? right.permute({1, 0}) : right;
    if (swapped_) return linalg::contract("kn,mk->nm", matrix, left_).reshape(product_);
    const Tensor product = linalg::contract("mk,kn->mn", left_, matrix).reshape(product_);
    return copied(permuted(product, result_order_), result_copy_);
  }

  // The orders of the copies that a run makes.
  std::vector<std::string> orders() const {
    std::vector<std::string> found;
    if (!right_.is_contiguous()) found.push_back(right_order_);
    if (!std::ranges::is_sorted(result_order_)) found.push_back(result_order_);
    return found;
  }

 private:
  // Copies into memory that is kept from call to call. A contiguous view is returned without a copy.
  static Tensor copied(const Tensor& view, Tensor& copy) {
    if (view.is_contiguous()) return view;
    if (!copy.defined()) copy = Tensor::empty(view.shape());
    copy.copy_from(view);
    return copy;
  }

  Tensor left_, right_;
  Shape matrix_, product_;
  bool as_columns_ = false, swapped_ = false;
  std::string right_order_, result_order_;
  Tensor right_copy_, result_copy_;
};

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
    const Copying copying(of.equation, normal(cube(labels.a, 2), "a"), normal(cube(labels.b, 2), "b"));
    const std::vector<std::string> found = copying.orders();
    orders.insert(found.begin(), found.end());
  }
  return orders;
}

Value measure_permute(const std::string& order, std::int64_t size, std::int64_t megabytes, const TurnOptions& turns) {
  const Tensor x = normal(cube(order, size), "x"), y = Tensor::zeros(x.shape());
  const Tensor view = permuted(x, order);
  const Contestant copy{"permute", [=] { y.copy_from(view); }, {}, [=] { return y; }};
  check_agreement(
      std::vector<Contestant>{{"the view", [] {}, {}, [=] { return view.contiguous(); }}, copy},
      [=] { y.fill(std::numeric_limits<double>::quiet_NaN()); }, 0);
  const Traffic traffic{.reads = 1, .writes = 1};
  return measure_memory({"permute", order, str(x.shape()), traffic, static_cast<double>(x.bytes()), copy, true}, megabytes,
                        turns);
}

Value measure_contract(const ContractCase& of, std::int64_t size, const TurnOptions& turns) {
  const Labels labels = labels_of(of.equation);
  const Tensor a = normal(cube(labels.a, size), "a"), b = normal(cube(labels.b, size), "b");
  const auto y = std::make_shared<Tensor>(), other = std::make_shared<Tensor>();
  const auto copying = std::make_shared<Copying>(of.equation, a, b);
  const std::vector<Contestant> sides{{"contract", [=] { *y = linalg::contract(of.equation, a, b); }, {}, [=] { return *y; }},
                                      {"copies and one GEMM", [=] { *other = copying->run(); }, {}, [=] { return *other; }}};
  check_agreement(
      sides, [=] { *y = *other = {}; }, kAgreement);
  const linalg::ContractPlan needed = linalg::plan_contract(of.equation, a, b, linalg::ContractCopies::where_needed);
  const char* const kind = needed.copies > 0 ? "exceptional" : needed.one_gemm() ? "gemm" : "batched";
  TESSERA_CHECK(of.kind == kind, InternalError, "contract ", of.equation, " is planned as ", needed.text, "; expected ", of.kind);
  const std::vector<Samples> samples = time_in_turns(sides, turns);
  Value row = Value::map();
  row.set("op", "contract");
  row.set("equation", of.equation);
  row.set("kind", of.kind);
  row.set("size", size);
  row.set("plan", linalg::plan_contract(of.equation, a, b).text);
  row.set("rounds", turns.rounds);
  row.set("contract", timed(sides[0].name, samples[0]));
  row.set("rival", timed(sides[1].name, samples[1]));
  const std::vector<std::string> orders = copying->orders();
  row.set("copies", static_cast<std::int64_t>(orders.size()));
  row.set("permutes", Value::list(Value::List(orders.begin(), orders.end())));
  row.set("ratio", ratio_value(samples[1], samples[0]));
  return row;
}

}  // namespace tessera::bench
