#include "core/cpu/stream_peak.h"

#include <gtest/gtest.h>

#include <string>

#include "core/support/error.h"
#include "core/tensor.h"

namespace tessera::cpu {
namespace {

constexpr std::int64_t kCount = 8 * 37;

// x[i] = i + 1 and y[i] = -2 (i + 1), with eight more elements after the last.
struct Arrays {
  Arrays() : x(Tensor::zeros({kCount + 8})), y(Tensor::zeros({kCount + 8})) {
    for (std::int64_t i = 0; i < x.numel(); ++i) {
      x.data<float>()[i] = static_cast<float>(i + 1);
      y.data<float>()[i] = static_cast<float>(-2 * (i + 1));
    }
  }

  Tensor x, y;
};

void expect_multiples(const Tensor& array, float factor, float factor_behind) {
  for (std::int64_t i = 0; i < array.numel(); ++i) {
    ASSERT_EQ(array.data<float>()[i], (i < kCount ? factor : factor_behind) * static_cast<float>(i + 1)) << i;
  }
}

TEST(StreamPeak, EveryPassScalesEveryElementAndNoOther) {
  std::string names;
  for (const StreamPass& pass : stream_passes()) {
    names += str(pass.name, ", ");
    const bool in_place = pass.name == std::string_view("scale in place");
    for (const int threads : {1, 2, 3}) {
      SCOPED_TRACE(str(pass.name, ", ", threads, " threads"));
      const Arrays arrays;
      pass.run(arrays.x.data<float>(), arrays.y.data<float>(), kCount, threads);
      expect_multiples(arrays.x, in_place ? 3.0f : 1.0f, 1);
      expect_multiples(arrays.y, in_place ? -6.0f : 3.0f, -2);
    }
  }
  EXPECT_EQ(names, "scale, scale past the caches, scale in place, ");
}

// Each element that changes is read once and written once.
TEST(StreamPeak, CountsTheWalksThatResultsNeed) {
  for (const StreamPass& pass : stream_passes()) {
    const double changed = pass.name == std::string_view("scale in place") ? 2 : 1;
    EXPECT_DOUBLE_EQ(pass.bytes(24), changed * 2 * 24 * 4) << pass.name;
  }
}

}  // namespace
}  // namespace tessera::cpu
