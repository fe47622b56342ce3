#include "bench/cases/dense_cases.h"

#include <algorithm>
#include <limits>
#include <memory>

#include "bench/result_lines.h"
#include "core/autograd/backward.h"
#include "core/device/decisions.h"
#include "core/ops/matmul.h"
#include "core/rng.h"
#include "core/support/error.h"

namespace tessera::bench {
namespace {

constexpr double kAgreement = 1e-3;  // of the largest value: Winograd and other orders of summation differ by about 1e-5
constexpr double kLeastRivalShare = 0.6;  // of the multiply-add peak
constexpr double kMostRivalShare = 1.05;  // above 1 because clock rates change between two measurements
constexpr TurnOptions kSweepTurns{.rounds = 7, .seconds = 2e-3};
constexpr TurnOptions kGuardTurns{.rounds = 30, .seconds = 0, .alone = 0};  // the best of many rounds, for shared machines

Contestant our_forward(std::function<Var()> op) {
  const auto y = std::make_shared<Tensor>();
  const auto run = [y, op = std::move(op)] {
    const NoGrad no_grad;
    *y = {};  // as in a network, where the last step's output is freed before the next one is made
    *y = op().value();
  };
  return {"tessera", run, {}, [y] { return *y; }};
}

// Times the backward sweep of a recorded graph. The forward that records it is not timed.
Contestant our_backward(Var leaf, const Tensor& grad_y, std::function<Var()> op) {
  const auto y = std::make_shared<Var>();
  const auto prepare = [y, leaf, op = std::move(op)] {
    *y = {};
    *y = op();
    leaf.set_grad({});  // last, so that the gradient reuses memory that is as far in the caches as the other sides' outputs
  };
  return {"tessera", [y, grad_y] { backward(*y, grad_y); }, prepare, [leaf] { return leaf.grad(); }};
}

std::function<void()> spoiler(const Tensor& output) {
  return [output] { output.fill(std::numeric_limits<double>::quiet_NaN()); };
}

// Our preparation before the timed call changes the state of the caches. All other sides run it too, to find the same state.
void share_preparation(DenseCase& dense) {
  for (auto* side : {&dense.rivals, &dense.blocked}) {
    for (Contestant& contestant : *side) contestant.prepare = dense.ours.prepare;
  }
}

void check_rivals(const DenseCase& dense) {
  for (const auto& [ways, where] :
       {std::pair(&dense.rivals, "on our tensors"), std::pair(&dense.blocked, "in its own layouts")}) {
    TESSERA_CHECK(!ways->empty(), InternalError, dense.op, ' ', dense.shape, ", ", dense.pass, ": oneDNN has no fast way ", where,
                  "; needs one to compare with");
  }
}

std::string chosen_algorithm(const DecisionScope& decisions, const DenseCase& dense) {
  const std::string start = dense.op == "matmul" ? "matmul " : str(dense.op, '.', dense.pass, ' ');
  for (const auto& [key, choice] : decisions.taken()) {
    if (key.starts_with(start)) return choice;
  }
  return "fixed";
}

}  // namespace

Tensor random_tensor(const Shape& shape, std::string_view name, DType dtype, Device device) {
  Tensor values = Tensor::empty(shape, DType::f32, device);
  fill_uniform(values, RngStream(1, "bench", name), -1.0, 1.0);
  return values.to(dtype);
}

DenseCase product_case(const ProductShape& shape) {
  const Tensor a = random_tensor({shape.m, shape.k}, "a");
  const Tensor b = random_tensor({shape.k, shape.n}, "b");
  const Product product{shape, a, b, Tensor::empty({shape.m, shape.n})};
  const Contestant ours = our_forward([a = Var(a), b = Var(b)] { return matmul(a, b); });
  return {"matmul",
          to_string(shape),
          "forward",
          shape.flops(),
          ours,
          product_rivals(product),
          packed_product_rivals(product),
          spoiler(product.y)};
}

DenseCase conv_case(ConvPass pass, const ConvShape& shape) {
  const Tensor x = random_tensor(shape.x(), "x");
  const Tensor weight = random_tensor(shape.weight(), "weight");
  const Tensor grad_y = random_tensor(shape.y(), "grad_y");
  ConvTensors rival{x, weight, grad_y};
  const auto convolve = [options = shape.options()](const Var& image, const Var& kernel) {
    return [=] { return conv2d(image, kernel, {}, options); };
  };
  Contestant ours;
  switch (pass) {
    case ConvPass::forward:
      ours = our_forward(convolve(Var(x), Var(weight)));
      rival.y = Tensor::empty(shape.y());
      break;
    case ConvPass::backward_input: {
      const Var leaf(x, true);
      ours = our_backward(leaf, grad_y, convolve(leaf, Var(weight)));
      rival.x = Tensor::empty(shape.x());
      break;
    }
    case ConvPass::backward_weight: {
      const Var leaf(weight, true);
      ours = our_backward(leaf, grad_y, convolve(Var(x), leaf));
      rival.weight = Tensor::empty(shape.weight());
    }
  }
  DenseCase dense{"conv2d",
                  to_string(shape),
                  std::string(to_string(pass)),
                  shape.flops(),
                  ours,
                  conv_rivals(pass, shape, rival),
                  blocked_conv_rivals(pass, shape, rival),
                  spoiler(rival.result(pass))};
  share_preparation(dense);
  return dense;
}

Value measure_dense(const DenseCase& dense, const TurnOptions& turns, const std::function<double()>& measure_peak) {
  check_rivals(dense);
  const DecisionScope decisions({.measure = true});
  std::vector<Contestant> all{dense.ours};
  all.insert(all.end(), dense.rivals.begin(), dense.rivals.end());
  check_agreement(all, dense.spoil, kAgreement);
  const Sweep swept = sweep(dense.rivals, kSweepTurns);

  std::vector<Contestant> sides{dense.ours};
  sides.insert(sides.end(), swept.finalists.begin(), swept.finalists.end());
  const std::size_t first_blocked = sides.size();
  sides.insert(sides.end(), dense.blocked.begin(), dense.blocked.end());
  const double peak_gflops = measure_peak();
  const std::vector<Samples> samples = time_in_turns(sides, turns);
  const std::size_t rival = 1 + fastest(std::span(samples).subspan(1, first_blocked - 1));
  const std::size_t blocked = first_blocked + fastest(std::span(samples).subspan(first_blocked));

  Value row = Value::map();
  row.set("op", dense.op);
  row.set("shape", dense.shape);
  row.set("pass", dense.pass);
  row.set("algorithm", chosen_algorithm(decisions, dense));
  row.set("rounds", turns.rounds);
  row.set("tessera_ms", to_value(samples[0]));
  row.set("rival", timed(sides[rival].name, samples[rival]));
  row.set("ratio", ratio_value(samples[rival], samples[0]));
  row.set("blocked", timed(sides[blocked].name, samples[blocked]));
  row.set("blocked_ratio", ratio_value(samples[blocked], samples[0]));
  row.set("rival_sweep", swept.rows);
  const double gflops = dense.flops / samples[0].median() * 1e-6;
  row.set("gflops", gflops);
  row.set("peak_share", gflops / peak_gflops);
  row.set("fma_peak_gflops", peak_gflops);
  return row;
}

double guarded_rival_gflops(double peak_gflops) {
  const ProductShape shape{1024, 1024, 1024};
  const Product product{shape, random_tensor({shape.m, shape.k}, "a"), random_tensor({shape.k, shape.n}, "b"),
                        Tensor::empty({shape.m, shape.n})};
  const std::vector<Samples> samples = time_in_turns(product_rivals(product), kGuardTurns);
  double least = std::numeric_limits<double>::infinity();
  for (const Samples& side : samples) least = std::min(least, *std::ranges::min_element(side.rounds));
  const double gflops = shape.flops() / least * 1e-6;
  TESSERA_CHECK(gflops >= kLeastRivalShare * peak_gflops, InternalError, "oneDNN's 1024x1024x1024 product reaches ", gflops,
                " of ", peak_gflops, " GFLOP/s; needs ", kLeastRivalShare,
                " of the peak: not a fair rival (one thread, a restricted instruction set, or a busy machine)");
  TESSERA_CHECK(gflops <= kMostRivalShare * peak_gflops, InternalError, "oneDNN's 1024x1024x1024 product reaches ", gflops,
                " GFLOP/s, more than the multiply-add peak of ", peak_gflops,
                ": the peak was taken while the machine did other work");
  return gflops;
}

}  // namespace tessera::bench
