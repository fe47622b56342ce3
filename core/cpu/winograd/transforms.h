// The transforms of F(4x4, 3x3) along one axis (Lavin & Gray 2016, section 4.3), and their transposes.
// Included only by the files that build it for one instruction set each; W, the lanes of a vector, tells their instances apart.
#pragma once

#include "core/cpu/winograd/problem.h"

namespace tessera::cpu::winograd {
namespace {

// B^T d.
template <class V>
[[gnu::always_inline]] inline void transform_input(const V (&d)[kTile], V (&t)[kTile]) {
  const V even = d[4] - 4.0f * d[2];
  const V odd = d[3] - 4.0f * d[1];
  const V sum = d[4] - d[2];
  const V difference = 2.0f * (d[3] - d[1]);
  t[0] = 4.0f * d[0] - 5.0f * d[2] + d[4];
  t[1] = even + odd;
  t[2] = even - odd;
  t[3] = sum + difference;
  t[4] = sum - difference;
  t[5] = 4.0f * d[1] - 5.0f * d[3] + d[5];
}

// A^T m.
template <class V>
[[gnu::always_inline]] inline void transform_output(const V (&m)[kTile], V (&y)[kOut]) {
  const V s12 = m[1] + m[2];
  const V d12 = m[1] - m[2];
  const V s34 = m[3] + m[4];
  const V d34 = m[3] - m[4];
  y[0] = m[0] + s12 + s34;
  y[1] = d12 + 2.0f * d34;
  y[2] = s12 + 4.0f * s34;
  y[3] = d12 + 8.0f * d34 + m[5];
}

// A y, the transpose of the above.
template <class V>
[[gnu::always_inline]] inline void transform_grad(const V (&y)[kOut], V (&m)[kTile]) {
  const V s02 = y[0] + y[2];
  const V s13 = y[1] + y[3];
  const V even = y[0] + 4.0f * y[2];
  const V odd = 2.0f * y[1] + 8.0f * y[3];
  m[0] = y[0];
  m[1] = s02 + s13;
  m[2] = s02 - s13;
  m[3] = even + odd;
  m[4] = even - odd;
  m[5] = y[3];
}

// G g.
template <class V>
[[gnu::always_inline]] inline void transform_filter(const V (&g)[kFilter], V (&u)[kTile]) {
  const V ends = g[0] + g[2];
  const V far = 0.25f * g[0] + g[2];
  u[0] = 0.25f * g[0];
  u[1] = (ends + g[1]) * (-1.0f / 6);
  u[2] = (ends - g[1]) * (-1.0f / 6);
  u[3] = (far + 0.5f * g[1]) * (1.0f / 6);
  u[4] = (far - 0.5f * g[1]) * (1.0f / 6);
  u[5] = g[2];
}

// G^T u, the transpose of the above.
template <class V>
[[gnu::always_inline]] inline void transform_filter_grad(const V (&u)[kTile], V (&g)[kFilter]) {
  const V s12 = u[1] + u[2];
  const V s34 = u[3] + u[4];
  g[0] = 0.25f * u[0] - s12 * (1.0f / 6) + s34 * (1.0f / 24);
  g[1] = (u[2] - u[1]) * (1.0f / 6) + (u[3] - u[4]) * (1.0f / 12);
  g[2] = (s34 - s12) * (1.0f / 6) + u[5];
}

}  // namespace
}  // namespace tessera::cpu::winograd
