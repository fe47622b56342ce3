// What tests of the convolution's algorithms share: shapes that each accepts, and which algorithm ran.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "core/cpu/onednn_version.h"
#include "core/ops/conv2d.h"
#include "core/ops/conv2d_plan_cpu.h"
#include "core/rng.h"
#include "tests/support/guarded.h"

namespace tessera::testing {

struct ConvCase {
  Shape x, weight;
  Conv2dOptions options = {};
  bool bias = false;
};

// All above the size from which algorithms are chosen; odd sizes, channels that fill no block, several images.
inline std::vector<ConvCase> conv_cases(const std::string& algorithm) {
  const Extent one{1, 1};
  const std::vector<ConvCase> pointwise{
      {{3, 13, 11, 64}, {96, 1, 1, 64}},  {{2, 19, 23, 48}, {64, 1, 1, 48}, {}, true},
      {{1, 31, 29, 33}, {71, 1, 1, 33}},  {{7, 9, 10, 128}, {31, 1, 1, 128}},
      {{1, 1, 1009, 64}, {32, 1, 1, 64}}, {{5, 16, 16, 31}, {64, 1, 1, 31}, {}, true},
  };
  if (algorithm == "gemm") return pointwise;
  const std::vector<ConvCase> depthwise{
      {{3, 29, 31, 96}, {96, 3, 3, 1}, {.padding = one, .groups = 96}},
      {{2, 37, 41, 100}, {100, 3, 3, 1}, {.stride = {2, 2}, .padding = one, .groups = 100}, true},
      {{1, 28, 28, 67}, {67, 5, 7, 1}, {.padding = {2, 3}, .groups = 67}, true},
      {{5, 21, 22, 64}, {64, 3, 3, 1}, {.stride = {1, 3}, .padding = {2, 0}, .dilation = {2, 3}, .groups = 64}},
  };
  if (algorithm == "depthwise") return depthwise;
  const std::vector<ConvCase> patches{
      {{3, 32, 40, 5}, {131, 4, 5, 5}, {.stride = {4, 5}}, true},  {{4, 64, 64, 3}, {67, 8, 8, 3}, {.stride = {8, 8}}, true},
      {{7, 14, 26, 33}, {31, 2, 2, 33}, {.stride = {2, 2}}},       {{1, 18, 30, 64}, {71, 3, 3, 64}, {.stride = {3, 3}}, true},
      {{2, 20, 63, 17}, {129, 1, 7, 17}, {.stride = {1, 7}}},      {{4, 77, 8, 1}, {1009, 11, 8, 1}, {.stride = {11, 8}}, true},
      {{64, 16, 32, 2}, {41, 8, 16, 2}, {.stride = {8, 16}}, true}};
  if (algorithm == "patches") return patches;
  std::vector<ConvCase> all{
      {{3, 13, 11, 32}, {32, 3, 3, 32}, {.padding = one}},
      {{2, 9, 10, 64}, {64, 3, 3, 64}, {.padding = one}, true},
      {{1, 17, 15, 48}, {32, 3, 3, 48}, {.padding = one}},
      {{5, 8, 8, 64}, {32, 3, 3, 64}, {.padding = one}, true},
      {{2, 16, 16, 33}, {31, 3, 3, 33}, {.padding = one}, true},
      {{1, 14, 14, 128}, {128, 3, 3, 128}, {.padding = one}},
      {{2, 15, 15, 32}, {32, 3, 3, 32}},
  };
  if (algorithm == "winograd") return all;
  if (algorithm == "winograd_nhwc") {
    all.push_back({{3, 21, 18, 16}, {16, 3, 3, 16}, {.padding = {2, 0}}, true});
    all.push_back({{2, 23, 26, 3}, {67, 3, 3, 3}, {.padding = {0, 2}}});
    return all;
  }
  all.insert(all.end(), pointwise.begin(), pointwise.end());
  all.push_back({{2, 17, 19, 32}, {48, 3, 3, 32}, {.stride = {2, 2}, .padding = one}});
  all.push_back({{2, 16, 16, 32}, {32, 5, 3, 16}, {.padding = {2, 1}, .groups = 2}, true});
  all.push_back({{1, 19, 19, 32}, {32, 3, 3, 32}, {.padding = {2, 2}, .dilation = {2, 2}}});
  return all;
}

inline bool onednn_has_winograd() { return cpu::onednn_isa().find("avx512") != std::string::npos; }

inline std::string describe(const ConvCase& c) { return str("x ", c.x, ", weight ", c.weight); }

inline Tensor random_values(const Shape& shape, std::uint64_t index) {
  const Tensor x = Tensor::empty(shape);
  fill_uniform(x, RngStream(7, "conv2d_algorithms_test", "values"), -1, 1, index);
  return x;
}

// The same at an address that only its elements are aligned to, between NaNs.
inline Tensor off_alignment(const Tensor& x) { return Guarded(x).tensor(); }

// Which algorithms took this thread's passes since it was made.
class Ran {
 public:
  // "nhwc"; after several passes all their names, each followed by a blank but the last.
  std::string names() const {
    std::string all;
    for (std::size_t i = 0; i < kNames.size(); ++i) {
      for (std::size_t run = before_[i]; run < cpu::conv2d_runs(kNames[i]); ++run) all += (all.empty() ? "" : " ") + kNames[i];
    }
    return all;
  }

 private:
  static inline const std::array<std::string, 10> kNames{"gemm",     "patches",       "depthwise", "nhwc",      "blocked",
                                                         "winograd", "winograd_nhwc", "split",     "reference", "f32"};
  using Counts = std::array<std::size_t, 10>;
  static Counts count() {
    Counts runs{};
    for (std::size_t i = 0; i < runs.size(); ++i) runs[i] = cpu::conv2d_runs(kNames[i]);
    return runs;
  }

  Counts before_ = count();
};

}  // namespace tessera::testing
