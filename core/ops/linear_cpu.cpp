#include <array>
#include <optional>

#include "core/cpu/cache_sweep.h"
#include "core/cpu/in_f32.h"
#include "core/cpu/onednn.h"
#include "core/cpu/panels/product.h"
#include "core/cpu/parallel.h"
#include "core/cpu/reference/matmul.h"
#include "core/cpu/rows/problem.h"
#include "core/device/constant_weights.h"
#include "core/device/decisions.h"
#include "core/ops/linear.h"
#include "core/ops/matmul.h"
#include "core/ops/relu.h"
#include "core/ops/row_product_cpu.h"

namespace tessera::cpu {
namespace {

using Desc = dnnl::memory::desc;

// `dtype` is the type of x and y, and of the weight during the product. The weight and bias are stored in f32.
struct Sizes {
  std::int64_t rows, in, out;
  DType dtype;
};

Sizes sizes_of(const Tensor& x, const Tensor& y) { return {x.dim(0), x.dim(1), y.dim(1), x.dtype()}; }

std::vector<std::int64_t> key_of(const Sizes& s) { return {s.rows, s.in, s.out, static_cast<std::int64_t>(s.dtype)}; }

Desc row_major(std::int64_t rows, std::int64_t columns, DType dtype = DType::f32) {
  return onednn::strided({rows, columns}, {columns, 1}, dtype);
}

// Forward primitives of the same sizes differ in these.
struct Form {
  bool bias, relu, constant_weight;
  bool inner_product;  // else a matmul
};

constexpr std::size_t kWeight = 1;  // index among a forward's operands

std::unique_ptr<onednn::Primitive> forward_of(const auto& chosen, const dnnl::primitive& primitive, const Desc& x,
                                              const Desc& weight, const Desc& y, const Desc& bias) {
  std::vector<onednn::Operand> operands{{DNNL_ARG_SRC, x, chosen.src_desc()},
                                        {DNNL_ARG_WEIGHTS, weight, chosen.weights_desc()},
                                        {DNNL_ARG_DST, y, chosen.dst_desc(), true}};
  if (!bias.is_zero()) operands.push_back({DNNL_ARG_BIAS, bias, chosen.bias_desc()});
  return std::make_unique<onednn::Primitive>(primitive, chosen.scratchpad_desc(), operands);
}

dnnl::primitive_attr attributes_of(const Form& f) { return f.relu ? onednn::relu_attributes() : onednn::attributes(); }

// Inner product with plain layouts. It reads the weights in place. A matmul packs them, which costs as much as the product itself
// for a single row.
std::unique_ptr<onednn::Primitive> build_inner_product(const Sizes& s, const Form& f) {
  const Desc x = row_major(s.rows, s.in, s.dtype);
  const Desc factor = row_major(s.out, s.in, s.dtype);
  const Desc bias = f.bias ? onednn::strided({s.out}, {1}) : Desc();
  const Desc y = row_major(s.rows, s.out, s.dtype);
  return onednn::build_or_null([&] {
    using Forward = dnnl::inner_product_forward;
    const Forward::primitive_desc chosen(Forward::desc(dnnl::prop_kind::forward_inference, x, factor, bias, y), attributes_of(f),
                                         onednn::engine());
    return forward_of(chosen, Forward(chosen), x, row_major(s.out, s.in), y, bias);
  });
}

// A constant weight is packed once, in the layout that the product wants.
std::unique_ptr<onednn::Primitive> build_forward(const Sizes& s, const Form& f) {
  if (f.inner_product) return build_inner_product(s, f);
  const Desc x = row_major(s.rows, s.in, s.dtype);
  const Desc weight = onednn::strided({s.in, s.out}, {1, s.in});
  const Desc factor =
      f.constant_weight ? onednn::any_layout({s.in, s.out}, s.dtype) : onednn::strided({s.in, s.out}, {1, s.in}, s.dtype);
  const Desc bias = f.bias ? row_major(1, s.out) : Desc();
  const Desc y = row_major(s.rows, s.out, s.dtype);
  return onednn::build_or_null([&] {
    const dnnl::matmul::primitive_desc chosen(dnnl::matmul::desc(x, factor, bias, y), attributes_of(f), onednn::engine());
    return forward_of(chosen, dnnl::matmul(chosen), x, weight, y, bias);
  });
}

// Inner product with plain layouts: its weight gradient is faster than a matmul with a transposed operand.
std::unique_ptr<onednn::Primitive> build_backward_weight(const Sizes& s, bool with_bias) {
  const Desc x = row_major(s.rows, s.in, s.dtype);
  const Desc weight = row_major(s.out, s.in);
  const Desc factor = row_major(s.out, s.in, s.dtype);
  const Desc bias = with_bias ? onednn::strided({s.out}, {1}) : Desc();
  const Desc y = row_major(s.rows, s.out, s.dtype);
  return onednn::build_or_null([&] {
    using Forward = dnnl::inner_product_forward;
    using Backward = dnnl::inner_product_backward_weights;
    const Forward::primitive_desc hint(Forward::desc(dnnl::prop_kind::forward_training, x, factor, bias, y), onednn::engine());
    const Backward::primitive_desc chosen(Backward::desc(x, weight, bias, y), onednn::attributes(), onednn::engine(), hint);
    std::vector<onednn::Operand> operands{{DNNL_ARG_SRC, x, chosen.src_desc()},
                                          {DNNL_ARG_DIFF_DST, y, chosen.diff_dst_desc()},
                                          {DNNL_ARG_DIFF_WEIGHTS, weight, chosen.diff_weights_desc(), true}};
    if (with_bias) operands.push_back({DNNL_ARG_DIFF_BIAS, bias, chosen.diff_bias_desc(), true});
    return std::make_unique<onednn::Primitive>(Backward(chosen), chosen.scratchpad_desc(), operands);
  });
}

Tensor batch_of_one(const Tensor& x) { return x.reshape({1, x.dim(0), x.dim(1)}); }

// In a ConstantWeights scope, the weight is packed and rounded once.
bool forward_onednn(const Tensor& x, const Tensor& weight, const Tensor& bias, const Tensor& y, bool relu, bool inner_product) {
  thread_local onednn::PlanCache<onednn::Primitive> cache;
  ConstantWeights* const constant = ConstantWeights::current();
  const Sizes sizes = sizes_of(x, y);
  const Form form{bias.defined(), relu, constant != nullptr, inner_product || sizes.rows == 1};
  const OneThread threads(sizes.rows == 1 && 2.0 * static_cast<double>(sizes.in * sizes.out) < kLeastFlopsForThreads);
  std::vector<std::int64_t> key = key_of(sizes);
  key.insert(key.end(), {form.bias, form.relu, form.constant_weight, form.inner_product});
  const auto plan = cache.get(std::move(key), [&] { return build_forward(sizes, form); });
  if (!plan) return false;
  const auto packed =
      constant == nullptr ? Tensor() : constant->derived(plan, weight, [&] { return plan->reordered(kWeight, weight.raw()); });
  std::vector<void*> data{x.raw(), packed.defined() ? packed.raw() : weight.raw(), y.raw()};
  if (bias.defined()) data.push_back(bias.raw());
  plan->execute(data, packed.defined() ? std::optional(kWeight) : std::nullopt);
  return true;
}

bool backward_weight_onednn(const Tensor& x, const Tensor& grad_y, const Tensor& grad_weight, const Tensor& grad_bias) {
  thread_local onednn::PlanCache<onednn::Primitive> cache;
  const bool with_bias = grad_bias.defined();
  const Sizes sizes = sizes_of(x, grad_y);
  std::vector<std::int64_t> key = key_of(sizes);
  key.push_back(with_bias);
  const auto plan = cache.get(std::move(key), [&] { return build_backward_weight(sizes, with_bias); });
  if (!plan) return false;
  if (with_bias) {
    plan->execute({x.raw(), grad_y.raw(), grad_weight.raw(), grad_bias.raw()});
  } else {
    plan->execute({x.raw(), grad_y.raw(), grad_weight.raw()});
  }
  return true;
}

void forward_in_library(const Tensor& x, const Tensor& weight, const Tensor& bias, const Tensor& y, bool relu,
                        bool inner_product = false) {
  const bool in_library =
      y.dtype() != DType::f64 && x.dim(1) != 0 && (bias.defined() || relu || ConstantWeights::current() != nullptr);
  if (in_library && forward_onednn(x, weight, bias, y, relu, inner_product)) return;
  if (in_library && y.dtype() == DType::bf16) {
    return in_f32([&](const Tensor& from, const Tensor& to) { forward_in_library(from, weight, bias, to, relu); }, y, x);
  }
  if (!bias.defined()) {
    matmul(batch_of_one(x), batch_of_one(weight), batch_of_one(y), {.transpose_b = true});
  } else if (x.dim(1) == 0) {
    y.copy_from(bias.expand(y.shape()));
  } else {
    dispatch_real(y.dtype(), "linear", [&]<class T>() {
      reference::matmul<T>({1, y.dim(0), y.dim(1), x.dim(1)}, {x.data<T>(), 0, x.dim(1), 1}, {weight.data<T>(), 0, 1, x.dim(1)},
                           bias.data<T>(), {y.data<T>(), 0, y.dim(1), 1});
    });
  }
  if (relu) relu_forward(y, y);
}

// Multiplies by a weight [in, out] that is transposed once per ConstantWeights scope. The library's sgemm reads it in order and
// may therefore be faster than the library's product with a packed weight, above all with few columns.
void forward_transposed(const Tensor& x, const Tensor& weight, const Tensor& y) {
  static const auto user = std::make_shared<const char>();
  const Tensor& transposed = ConstantWeights::current()->derived(user, weight, [&] {
    return weight.permute({1, 0}).contiguous();
  });
  matmul(batch_of_one(x), batch_of_one(transposed), batch_of_one(y), {});
}

// Products for which the clock chooses how they are computed. They differ in the bias and in the ReLU after the product.
enum class Choice : std::int64_t {
  constant,
  forward_bias,
  forward_relu,
  forward_bias_relu,
  backward_weight,
  backward_weight_bias
};

struct Ways {
  const char* op;
  std::array<const char*, 3> names;  // the first is used without a clock; null if there is no third
};
constexpr std::array<Ways, 6> kWays{{{"linear.constant", {"packed", "transposed", nullptr}},
                                     {"linear.forward bias", {"matmul", "inner_product", "panels"}},
                                     {"linear.forward relu", {"matmul", "inner_product", nullptr}},
                                     {"linear.forward bias relu", {"matmul", "inner_product", nullptr}},
                                     {"linear.backward_weight", {"inner_product", "products", nullptr}},
                                     {"linear.backward_weight bias", {"inner_product", "products", nullptr}}}};

// Operands of y = x w^T, or their gradients.
struct Operands {
  const Tensor &x, &weight, &y;
};

// Returns the number of the way that is the fastest in f32, by the clock. Without a clock, and for small products, it is 0.
// `run(i)` computes in way i.
template <class Run>
std::size_t way_of(Choice choice, const Operands& p, const Run& run) {
  const Sizes s = sizes_of(p.x, p.y);
  const double flops = 2.0 * static_cast<double>(s.rows * s.in) * static_cast<double>(s.out);
  if (!decisions_active() || s.dtype != DType::f32 || flops < kLeastFlopsToMeasure) return 0;
  thread_local onednn::PlanCache<std::size_t> known;
  const auto number = static_cast<std::int64_t>(choice);
  return *known.get({number, s.rows, s.in, s.out, static_cast<std::int64_t>(decision_epoch())}, [&] {
    const auto& [op, names] = kWays[static_cast<std::size_t>(number)];
    const auto seconds = [&](std::size_t i) {
      // A constant weight is read from a derived copy, which this flush would not reach.
      if (choice != Choice::constant) flush_caches_of({&p.x, &p.weight, &p.y});
      return seconds_of(i, [&] { run(i); });
    };
    const std::string key = str(op, " rows", s.rows, " in", s.in, " out", s.out, " threads", onednn::threads_now());
    std::vector<std::string> candidates;
    for (const char* const name : names) {
      if (name != nullptr) candidates.emplace_back(name);
    }
    return std::make_unique<std::size_t>(decide(key, candidates, seconds));
  });
}

// Only for a constant weight with nothing after the product: sgemm has neither bias nor ReLU.
bool takes_transposed(const Tensor& x, const Tensor& weight, const Tensor& bias, const Tensor& y, bool relu) {
  if (ConstantWeights::current() == nullptr || bias.defined() || relu) return false;
  return way_of(Choice::constant, {x, weight, y}, [&](std::size_t i) {
           i == 0 ? forward_in_library(x, weight, bias, y, relu) : forward_transposed(x, weight, y);
         }) == 1;
}

// For a weight that changes, with a bias or a ReLU fused into the product.
void forward_changing(const Tensor& x, const Tensor& weight, const Tensor& bias, const Tensor& y, bool relu) {
  const auto run = [&](std::size_t i) {
    if (i == 2) return panels::product(panels::kernels(), {x, weight, /*b_transposed=*/true}, bias, y);
    forward_in_library(x, weight, bias, y, relu, /*inner_product=*/i == 1);
  };
  run(way_of(!relu            ? Choice::forward_bias
             : bias.defined() ? Choice::forward_bias_relu
                              : Choice::forward_relu,
             {x, weight, y}, run));
}

// A product with a single row waits for memory, not for multiplications. A choice therefore pays for far smaller products than
// kLeastFlopsToMeasure.
constexpr double kLeastRowFlopsToMeasure = 1e5;

// How one row is multiplied: by the library, or by our loops in one thread or in a team of threads. Whether a team pays depends
// on how long its threads take to wake.
enum class RowWay { library, one_thread, team };

// The weight as our loops read it. For bf16 it is a copy that is rounded once per ConstantWeights scope.
const Tensor& row_weight(const Tensor& weight, DType dtype) {
  static const auto user = std::make_shared<const char>();
  if (dtype == DType::f32) return weight;
  return ConstantWeights::current()->derived(user, weight, [&] { return weight.to(dtype); });
}

void forward_one_row(RowWay way, const Tensor& x, const Tensor& weight, const Tensor& bias, const Tensor& y, bool relu) {
  if (way == RowWay::library) return forward_in_library(x, weight, bias, y, relu);
  row_product(x, row_weight(weight, y.dtype()), bias, y, relu, way == RowWay::team ? omp_get_max_threads() : 1);
}

// Rounding a weight that may change costs more than the product, so bf16 is then left to the library.
bool takes_row_ways(const Tensor& x, const Tensor& y) {
  if (x.dim(0) != 1 || x.dim(1) == 0) return false;
  return y.dtype() == DType::f32 || (y.dtype() == DType::bf16 && ConstantWeights::current() != nullptr);
}

constexpr std::array<const char*, 3> kRowWayNames{"library", "one_thread", "team"};  // of RowWay's values

RowWay row_way(const Tensor& x, const Tensor& weight, const Tensor& bias, const Tensor& y, bool relu) {
  const Sizes s{1, x.dim(1), y.dim(1), y.dtype()};
  const bool constant = ConstantWeights::current() != nullptr;
  // For a weight from memory, our loop in a team goes first: the fastest there (docs/decisions/008-single-rows-from-memory.md).
  const bool from_memory = constant && weight.bytes() >= kLeastSweptBytes;
  const auto ways = from_memory ? std::array{RowWay::team, RowWay::library, RowWay::one_thread}
                                : std::array{RowWay::library, RowWay::one_thread, RowWay::team};
  if (!decisions_active() || 2.0 * static_cast<double>(s.in * s.out) < kLeastRowFlopsToMeasure) return ways[0];
  thread_local onednn::PlanCache<RowWay> cache;
  std::vector<std::int64_t> key = key_of(s);
  key.insert(key.end(), {bias.defined(), relu, constant, static_cast<std::int64_t>(decision_epoch())});
  return *cache.get(std::move(key), [&] {
    std::optional<ConstantWeights> tried;  // holds what the timed ways derive, and releases it at the end
    if (constant) tried.emplace();
    CacheSweep sweep(from_memory);
    std::vector<std::string> names;
    for (const RowWay way : ways) names.emplace_back(kRowWayNames[static_cast<std::size_t>(way)]);
    const auto seconds = [&](std::size_t i) {
      sweep();
      return seconds_of(i, [&] { forward_one_row(ways[i], x, weight, bias, y, relu); });
    };
    const std::string name =
        str("linear.row in", s.in, " out", s.out, " bias", static_cast<int>(bias.defined()), relu ? " relu" : "", " threads",
            onednn::threads_now(), constant ? " constant" : "", s.dtype == DType::bf16 ? " bf16" : "");
    return std::make_unique<RowWay>(ways[decide(name, names, seconds)]);
  });
}

// Computes grad_weight as a product of matrices, and grad_bias as the sums of grad_y's columns.
void backward_weight_by_products(const Tensor& x, const Tensor& grad_y, const Tensor& grad_weight, const Tensor& grad_bias) {
  matmul(batch_of_one(grad_y), batch_of_one(x), batch_of_one(grad_weight), {.transpose_a = true});
  if (!grad_bias.defined()) return;
  const std::int64_t rows = grad_y.dim(0), columns = grad_y.dim(1);
  if (x.dtype() == DType::f64) {
    return reference::column_sums(rows, columns, grad_y.data<double>(), grad_bias.data<double>());
  }
  rows::column_sums(rows::kernels(), rows, columns, grad_y.data<float>(), grad_bias.data<float>());
}

// Whether products replace the library's gradient of an inner product, which computes the bias gradient as well.
bool takes_products(const Tensor& x, const Tensor& grad_y, const Tensor& grad_weight, const Tensor& grad_bias) {
  const Choice choice = grad_bias.defined() ? Choice::backward_weight_bias : Choice::backward_weight;
  return way_of(choice, {x, grad_weight, grad_y}, [&](std::size_t i) {
           if (i == 1 || !backward_weight_onednn(x, grad_y, grad_weight, grad_bias)) {
             backward_weight_by_products(x, grad_y, grad_weight, grad_bias);
           }
         }) == 1;
}

}  // namespace

void linear_forward(const Tensor& x, const Tensor& weight, const Tensor& bias, const Tensor& y, bool relu) {
  if (y.numel() == 0) return;
  if (takes_row_ways(x, y)) {
    forward_one_row(row_way(x, weight, bias, y, relu), x, weight, bias, y, relu);
  } else if (takes_transposed(x, weight, bias, y, relu)) {
    forward_transposed(x, weight, y);
  } else if (ConstantWeights::current() == nullptr && (bias.defined() || relu)) {
    forward_changing(x, weight, bias, y, relu);
  } else {
    forward_in_library(x, weight, bias, y, relu);
  }
}

void linear_backward_input(const Tensor& grad_y, const Tensor& weight, const Tensor& grad_x) {
  matmul(batch_of_one(grad_y), batch_of_one(weight), batch_of_one(grad_x), {});
}

void linear_backward_weight(const Tensor& x, const Tensor& grad_y, const Tensor& grad_weight, const Tensor& grad_bias) {
  const bool computable = x.numel() > 0 && grad_y.numel() > 0;
  const bool in_library = computable && x.dtype() != DType::f64 && !takes_products(x, grad_y, grad_weight, grad_bias);
  if (in_library && backward_weight_onednn(x, grad_y, grad_weight, grad_bias)) return;
  if (x.dtype() == DType::bf16) {
    return linear_backward_weight(x.to(DType::f32), grad_y.to(DType::f32), grad_weight, grad_bias);
  }
  backward_weight_by_products(x, grad_y, grad_weight, grad_bias);
}

}  // namespace tessera::cpu
