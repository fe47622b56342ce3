#include "compress/prune/sr_ste.h"
#include "compress/prune/sr_ste_math.h"
#include "core/cpu/parallel_tensors.h"
#include "core/dtype.h"

namespace tessera::cpu {
namespace {

template <class T>
void hide_groups(const SrSteOperands& o, const NOfM& n_m, std::int64_t begin, std::int64_t end) {
  for (std::int64_t group = begin; group < end; ++group) {
    T* const weight = o.weight.data<T>() + group * n_m.m;
    T* const dense = o.dense.data<T>() + group * n_m.m;
    for (std::int64_t k = 0; k < n_m.m; ++k) dense[k] = weight[k];
    for (std::int64_t k = 0; k < n_m.m; ++k) weight[k] = among_largest(dense, n_m.n, n_m.m, k) ? dense[k] : T(0);
  }
}

template <class T>
void pull_part(const SrSteOperands& o, double factor, std::int64_t begin, std::int64_t end) {
  const T lambda = static_cast<T>(factor);
  T* const gradient = o.gradient.data<T>();
  T* const weight = o.weight.data<T>();
  const T* const dense = o.dense.data<T>();
#pragma omp simd
  for (std::int64_t i = begin; i < end; ++i) {
    gradient[i] += lambda * (dense[i] - weight[i]);
    weight[i] = dense[i];
  }
}

template <class T>
void pull_weights_part(const SrSteOperands& o, double factor, std::int64_t begin, std::int64_t end) {
  const T share = static_cast<T>(factor);
  T* const weight = o.weight.data<T>();
  const T* const dense = o.dense.data<T>();
#pragma omp simd
  for (std::int64_t i = begin; i < end; ++i) weight[i] = dense[i] - share * (dense[i] - weight[i]);
}

const Tensor& weight_of(const SrSteOperands& o) { return o.weight; }

}  // namespace

void sr_ste_hide(std::span<const SrSteOperands> operands, const NOfM& n_m) {
  for (const SrSteOperands& o : operands) {
    parallel_for(o.weight.numel() / n_m.m, kGrain / n_m.m + 1, [&](std::int64_t begin, std::int64_t end) {
      dispatch_real(o.weight.dtype(), "sr_ste", [&]<class T>() { hide_groups<T>(o, n_m, begin, end); });
    });
  }
}

void sr_ste_pull(std::span<const SrSteOperands> operands, double lambda) {
  parallel_tensors(operands, kGrain, weight_of, [&](std::size_t i, std::int64_t begin, std::int64_t end) {
    dispatch_real(operands[i].weight.dtype(), "sr_ste", [&]<class T>() { pull_part<T>(operands[i], lambda, begin, end); });
  });
}

void sr_ste_pull_weights(std::span<const SrSteOperands> operands, const Tensor& step_state, double lambda) {
  const StepStateData& state = step_state_data(step_state);
  const double share = state.skip != 0 ? 0 : state.lr * lambda;
  parallel_tensors(operands, kGrain, weight_of, [&](std::size_t i, std::int64_t begin, std::int64_t end) {
    dispatch_real(operands[i].weight.dtype(), "sr_ste", [&]<class T>() { pull_weights_part<T>(operands[i], share, begin, end); });
  });
}

}  // namespace tessera::cpu
