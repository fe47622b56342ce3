#include "core/ops/sparse_product.h"

#include <gtest/gtest.h>

#include "core/device/constant_weights.h"
#include "core/device/decisions.h"
#include "core/rng.h"
#include "core/storage.h"

namespace tessera {
namespace {

// A clock runs both ways, of which one composes the dense weight.
TEST(SparseProduct, WhatLostTheChoiceIsNotKeptWhileWeightsAreConstant) {
  const NoGrad no_grad;
  const std::int64_t size = 512;
  const Tensor mask = Tensor::zeros({size, size}, DType::u8);
  for (std::int64_t i = 0; i < mask.numel(); i += 61) mask.data<std::uint8_t>()[i] = 1;
  const auto weight = std::make_shared<SparseWeight>(mask);
  const Tensor values = Tensor::empty({weight->count()}), x = Tensor::empty({256, size});
  fill_uniform(values, RngStream(1, "sparse_product", "values"), -1, 1);
  fill_uniform(x, RngStream(1, "sparse_product", "x"), -1, 1);
  std::string choice;
  const DecisionScope scope(
      {.measure = true, .on_measured = [&](const std::string&, const std::string& taken) { choice = taken; }});
  sparse_linear(Var(x), Var(values), weight);  // what kernels prepare for shapes is there
  const ConstantWeights constant;
  choice.clear();
  const std::size_t before = memory_stats(Device::cpu()).in_use;
  sparse_linear(Var(x), Var(values), weight);
  const std::size_t kept = memory_stats(Device::cpu()).in_use - before, dense = mask.numel() * sizeof(float);
  ASSERT_FALSE(choice.empty()) << "nothing was chosen";
  if (choice == "sparse") {
    EXPECT_LT(kept, dense / 2) << "the values in the order of the kernels";
  } else {
    EXPECT_LE(kept, 3 * dense) << "the dense weight, and in the layout that the library wants";
  }
}

}  // namespace
}  // namespace tessera
