#include "bench/cases/svd_cases.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <memory>
#include <optional>

#include "bench/result_lines.h"
#include "bench/rivals/torch_rival.h"
#include "bench/turns.h"
#include "core/cpu/fma_peak.h"
#include "core/io/scratch_folder.h"
#include "core/linalg/contract.h"
#include "core/linalg/randomised_svd.h"
#include "core/linalg/relative_error.h"
#include "core/rng.h"
#include "core/support/error.h"

namespace tessera::bench {
namespace {

constexpr double kTurnMs = 200;
constexpr std::int64_t kMostCalls = 50;
constexpr std::int64_t kSweepCalls = 6;
constexpr int kReflections = 3;

// Reflects every row of x in a random hyperplane: x (I - 2 v v'), which keeps the singular values. It takes O(n^2) operations.
// A random orthogonal matrix would take n^3.
void reflect_rows(std::vector<double>& x, std::int64_t n, std::uint64_t seed) {
  const Tensor drawn = Tensor::empty({n}, DType::f64);
  fill_normal(drawn, RngStream(seed, "svd_cases", "reflection"), 0, 1);
  const double* const v = drawn.data<double>();
  double norm = 0;
  for (std::int64_t j = 0; j < n; ++j) norm += v[j] * v[j];
  for (std::int64_t i = 0; i < n; ++i) {
    double* const row = x.data() + i * n;
    double inner = 0;
    for (std::int64_t j = 0; j < n; ++j) inner += row[j] * v[j];
    for (std::int64_t j = 0; j < n; ++j) row[j] -= 2 * inner / norm * v[j];
  }
}

void transpose(std::vector<double>& x, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) {
    for (std::int64_t j = 0; j < i; ++j)
      std::swap(x[static_cast<std::size_t>(i * n + j)], x[static_cast<std::size_t>(j * n + i)]);
  }
}

std::vector<double> our_run(const Tensor& a, std::int64_t rank, std::int64_t count) {
  std::vector<double> ms;
  for (std::int64_t i = 0; i < count; ++i) {
    const double start = steady_seconds();
    linalg::randomised_svd(a, rank);
    ms.push_back((steady_seconds() - start) * 1e3);
  }
  return ms;
}

double our_error(const Tensor& a, std::int64_t rank) {
  const linalg::Svd f = linalg::randomised_svd(a, rank);
  const Tensor scaled = linalg::contract("mr,r->mr", f.u, f.s);
  return linalg::relative_error(linalg::contract("mr,nr->mn", scaled, f.v), a);
}

// Starts a process for each number of threads, one after another.
std::unique_ptr<SklearnRival> fastest_threads(const SklearnProgram& program, const SklearnWay& way, const SvdCase& of,
                                              const std::string& file, Value& threads_ms) {
  std::optional<int> best;
  double lowest = 0;
  const auto start = [&](int threads) {
    auto rival = std::make_unique<SklearnRival>(SklearnProgram{program.python, program.script, threads});
    rival->load(file, of.size);
    return rival;
  };
  for (int threads = program.threads;; threads = 1) {
    const std::vector<double> ms = start(threads)->run(way, of.rank, kSweepCalls);
    const double median = quantile({ms.begin() + 1, ms.end()}, 0.5);  // the first call causes page faults
    threads_ms.set(str(threads), median);
    if (!best || median < lowest) {
      best = threads;
      lowest = median;
    }
    if (threads == 1) break;
  }
  return start(*best);
}

Value side(const std::string& name, const Samples& samples, double error) {
  Value row = timed(name, samples);
  row.set("error", error);
  return row;
}

}  // namespace

Tensor make_matrix(const SvdCase& of) {
  const std::int64_t n = of.size;
  if (of.spectrum == "flat") {
    const Tensor a = Tensor::empty({n, n});
    fill_normal(a, RngStream(1, "svd_cases", "flat"), 0, 1);
    return a;
  }
  TESSERA_CHECK(of.spectrum == "power", InternalError, "svd_cases: spectrum is ", of.spectrum, "; needs flat or power");
  std::vector<double> x(static_cast<std::size_t>(n * n), 0.0);
  for (std::int64_t i = 0; i < n; ++i) x[static_cast<std::size_t>(i * n + i)] = 1.0 / static_cast<double>(i + 1);
  for (int i = 0; i < 2 * kReflections; ++i) {  // alternately from the right and from the left
    reflect_rows(x, n, static_cast<std::uint64_t>(i));
    transpose(x, n);
  }
  return Tensor::from(x, {n, n}).to(DType::f32);
}

Value measure_svd(const SvdCase& of, const SklearnProgram& program, std::int64_t rounds) {
  const linalg::RandomisedOptions ours;
  const SklearnWay usual{"scikit-learn, defaults", 10, -1};
  const SklearnWay equal{"scikit-learn, our oversampling and iterations", ours.oversampling, ours.power_iterations};
  const Tensor a = make_matrix(of);
  const ScratchFolder folder("tessera_bench");
  const std::string file = folder / "a.f32";
  std::ofstream(file, std::ios::binary).write(static_cast<const char*>(a.raw()), static_cast<std::streamsize>(a.bytes()));
  Value threads_ms = Value::map();
  const std::unique_ptr<SklearnRival> fastest = fastest_threads(program, usual, of, file, threads_ms);
  SklearnRival& rival = *fastest;
  const FairProduct product =
      fair_product({"scikit-learn", str(rival.threads(), " threads"), rival.threads(), [&] { return rival.matmul_gflops(); }},
                   cpu::fma_peak_gflops);

  const double error = our_error(a, of.rank), usual_error = rival.relative_error(usual, of.rank);
  TESSERA_CHECK(error <= kErrorShare * usual_error, NumericError, "randomised_svd of ", a.shape(), ", spectrum ", of.spectrum,
                ": error is ", error, ", scikit-learn's ", usual_error, "; may be ", kErrorShare, " times as large");
  const std::vector<SelfTimed> sides{[&](std::int64_t count) { return our_run(a, of.rank, count); },
                                     [&](std::int64_t count) { return rival.run(usual, of.rank, count); },
                                     [&](std::int64_t count) { return rival.run(equal, of.rank, count); }};
  double slowest = 0;
  for (const SelfTimed& timed : sides) slowest = std::max(slowest, timed(2).back());
  const auto calls = std::clamp(static_cast<std::int64_t>(kTurnMs / slowest), std::int64_t{1}, kMostCalls);
  const std::vector<Samples> samples = time_in_turns(sides, rounds, calls);

  Value row = Value::map();
  row.set("op", "randomised_svd");
  row.set("size", of.size);
  row.set("rank", of.rank);
  row.set("spectrum", of.spectrum);
  row.set("rounds", rounds);
  row.set("tessera", side("tessera", samples[0], error));
  row.set("rival", side(usual.name, samples[1], usual_error));
  row.set("ratio", ratio_value(samples[1], samples[0]));
  row.set("equal_work", side(equal.name, samples[2], rival.relative_error(equal, of.rank)));
  row.set("equal_work_ratio", ratio_value(samples[2], samples[0]));
  row.set("threads_ms", threads_ms);
  row.set("sklearn", rival.environment());
  set_product(row, product, "sklearn");
  return row;
}

}  // namespace tessera::bench
