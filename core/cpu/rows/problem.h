// Kernels that are bound by memory: elementwise ones of long arrays, and those of rows which stay in the first cache. All
// compute in f32; elements of bf16 are widened where they are loaded, and results rounded where they are stored.
#pragma once

#include <cstdint>
#include <type_traits>

#include "core/half.h"
#include "core/support/rounding.h"

namespace tessera::cpu::rows {

// How results are stored. `past_caches` reads no line of memory before it is overwritten: a third of the traffic of an op that
// reads one array and writes another. It is for results that no cache could hold until they are read. Kernels are called in the
// loops of core/cpu/parallel.h, after which other threads see what was stored.
enum class Stores { cached, past_caches };

template <class T>
struct ExpSum {
  T top;  // the largest element, so that no exponential overflows
  T total;  // the sum of exp(x - top); NaN where x holds one
};

struct CrossEntropyRow {
  ExpSum<float> sum;
  std::int64_t label;
  float even, picked, scale;
};

struct NormRow {
  float mean, inv_std;
};

// The heads of one position, [heads][2 half]: the first `rotated` ones are turned, the others copied.
struct HeadRow {
  std::int64_t heads, rotated, half;
};

// Two rows of sums, each from the beginning of a cache line on.
constexpr std::int64_t norm_scratch(std::int64_t n) { return 2 * round_up(n, 16); }

// Rows have n > 0 elements. RMS norm subtracts no mean, which counts as 0, and has no beta.
template <class T>
struct NormKernels {
  NormRow (*forward)(const T* x, const float* gamma, const float* beta, std::int64_t n, double eps, Stores stores, T* y);
  // grad_x [count][n] of rows x and g [count][n]. Unless gamma_sums is null, gamma_sums [n] and beta_sums [n] get what
  // `parameters` adds: the rows are summed in `scratch` [norm_scratch(n)], and the doubles are updated once.
  void (*backward)(const T* x, const T* g, const float* gamma, const NormRow* rows, std::int64_t count, std::int64_t n,
                   Stores stores, T* grad_x, float* scratch, double* gamma_sums, double* beta_sums);
  // gamma [n] and beta [n] += the sums over `count` rows of x and g [count][n], of g h and of g.
  void (*parameters)(const T* x, const T* g, const NormRow* rows, std::int64_t count, std::int64_t n, double* gamma,
                     double* beta);
};

inline constexpr int kMostVectors = 4;

// Those that both f32 and bf16 have.
template <class T>
struct KernelsOf {
  // y[i] = f(x[i]), of `count` elements; y may be x.
  void (*gelu_erf)(const T* x, std::int64_t count, Stores stores, T* y);
  void (*gelu_tanh)(const T* x, std::int64_t count, Stores stores, T* y);
  // grad_x[i] = g[i] f'(x[i]); grad_x may be g.
  void (*gelu_erf_backward)(const T* x, const T* g, std::int64_t count, Stores stores, T* grad_x);
  void (*gelu_tanh_backward)(const T* x, const T* g, std::int64_t count, Stores stores, T* grad_x);
  // y[i] = silu(x[i]) x[n + i], and its gradient [2 n].
  void (*swiglu)(const T* x, std::int64_t n, Stores stores, T* y);
  void (*swiglu_backward)(const T* x, const T* g, std::int64_t n, Stores stores, T* grad_x);
  // Halves a and b of a head become a c - b s and b c + a s, with c = cosine [half] and s = sign sine [half]. y may be x.
  void (*rotate)(const T* x, const float* cosine, const float* sine, const HeadRow& row, float sign, Stores stores, T* y);
  NormKernels<T> layer_norm, rms_norm;
  // dots [count][vectors]: of rows of n elements and of 1 to kMostVectors vectors x [vectors][pitch]. One row after another, so
  // that rows which lie side by side are read as one stream.
  void (*dots)(const T* const* rows, std::int64_t count, std::int64_t n, const float* x, std::int64_t pitch, int vectors,
               float* dots);
};

struct Kernels {
  KernelsOf<float> f32;
  KernelsOf<bfloat16> bf16;
  template <class T>
  const KernelsOf<T>& of() const {
    if constexpr (std::is_same_v<T, float>)
      return f32;
    else
      return bf16;
  }

  // x is one row of n > 0 elements.
  ExpSum<float> (*exp_sum)(const float* x, std::int64_t n);
  ExpSum<float> (*softmax)(const float* x, std::int64_t n, Stores stores, float* y);
  // grad_x = scale (exp(x - top) / total - target), where the target is `even` and, at the label, `picked` more.
  void (*cross_entropy_backward)(const float* x, std::int64_t n, const CrossEntropyRow& row, Stores stores, float* grad_x);
  // sums [n] += the sums over `count` rows of n elements, `pitch` apart. Eight rows at a time are added in f32.
  void (*add_rows)(const float* x, std::int64_t pitch, std::int64_t count, std::int64_t n, double* sums);
  // grad_x = scale y (g - sum(g y)).
  void (*softmax_backward)(const float* y, const float* g, std::int64_t n, float scale, Stores stores, float* grad_x);
};

extern const Kernels kAvx2Kernels;
extern const Kernels kAvx512Kernels;

const Kernels& kernels();  // of isa()

// totals [columns] = the sums over the rows of x [rows][columns]. The number of threads moves no bit.
void column_sums(const Kernels& kernels, std::int64_t rows, std::int64_t columns, const float* x, float* totals);

Stores stores_for(std::int64_t bytes);  // of a result of so many bytes: past the caches where the last one holds less than it

}  // namespace tessera::cpu::rows
