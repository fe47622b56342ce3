#include "core/ops/cross_entropy.h"

#include <gtest/gtest.h>

#include "core/rng.h"
#include "tests/support/gpu.h"

namespace tessera::testing {
namespace {

class CudaCrossEntropy : public GpuTest {};

// Rows that are kept in registers, and rows that are read again.
TEST_F(CudaCrossEntropy, WithoutAGraphTheLossIsTheSame) {
  for (const std::int64_t classes : {7, 1000, 20000}) {
    const Tensor logits = Tensor::empty({3, classes}, DType::f32);
    fill_normal(logits, RngStream(1, "cross_entropy", "logits"), 0.0, 3.0);
    const Tensor labels = Tensor::from<std::int64_t>({0, -100, classes - 1}, {3}).to(gpu());
    for (const CrossEntropyOptions& options : {CrossEntropyOptions{}, CrossEntropyOptions{.label_smoothing = 0.1}}) {
      const Var recorded = cross_entropy(Var(logits.to(gpu()), true), labels, options);
      const Var alone = cross_entropy(Var(logits.to(gpu())), labels, options);
      EXPECT_EQ(alone.value().item(), recorded.value().item()) << classes << " classes, smoothing " << options.label_smoothing;
      EXPECT_NEAR(alone.value().item(), cross_entropy(Var(logits), labels.to(Device::cpu()), options).value().item(), 1e-4);
    }
  }
}

}  // namespace
}  // namespace tessera::testing
