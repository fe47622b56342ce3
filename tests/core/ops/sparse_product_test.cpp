#include "core/ops/sparse_product.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "core/autograd/backward.h"
#include "core/cpu/machine_memory.h"
#include "core/device/constant_weights.h"
#include "core/device/decisions.h"
#include "core/rng.h"
#include "core/storage.h"
#include "core/support/error.h"
#include "tests/support/peak_growth.h"

namespace tessera {
namespace {

// A clock measures both ways: the sparse kernels, and a dense product, which composes the dense weight.
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
  sparse_linear(Var(x), Var(values), weight);  // prepares what kernels need for these shapes
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

// Two rows, because the dense product of one row has its own clock.
TEST(SparseProduct, AClockReadsLargeKeptWeightsOfAFewRowsFromMemory) {
  const NoGrad no_grad;
  const Tensor mask = Tensor::zeros({512, 512}, DType::u8);
  for (std::int64_t i = 0; i < mask.numel(); i += 7) mask.data<std::uint8_t>()[i] = 1;
  const auto weight = std::make_shared<SparseWeight>(mask);
  const Var values(Tensor::full({weight->count()}, 0.5));
  const ConstantWeights constant;
  const auto growth = [&](std::int64_t rows) {
    const DecisionScope scope({.measure = true});
    return peak_growth([&] { sparse_linear(Var(Tensor::full({rows, 512}, 0.5)), values, weight); });
  };
  const std::size_t sweep = cpu::bytes_beyond_caches(std::size_t{16} << 20, std::size_t{256} << 20);
  const std::optional<std::size_t> two = growth(2);
  if (!two) GTEST_SKIP() << "the system does not start its count of the most memory again";
  EXPECT_GT(*two, sweep / 2);
  EXPECT_LT(*growth(8), sweep / 2) << "more than a few";
}

// Each pass, number of rows and index has its own choice. A later run gets these choices back.
TEST(SparseProduct, ChoicesAreMadeForEachPassAndBatchAndReplayed) {
  const std::int64_t size = 256;
  const Tensor mask = Tensor::zeros({size, size}, DType::u8);
  for (std::int64_t i = 0; i < mask.numel(); i += 7) mask.data<std::uint8_t>()[i] = 1;
  const auto weight = std::make_shared<SparseWeight>(mask);
  const Var values(Tensor::zeros({weight->count()}), true);
  const auto step = [&](std::int64_t rows) {
    const Var y = sparse_linear(Var(Tensor::zeros({rows, size}), true), values, weight);
    backward(y, Tensor::zeros(y.value().shape()));
  };
  std::map<std::string, std::string> chosen;
  {
    const DecisionScope scope({.measure = true, .on_measured = [&](const std::string& key, const std::string& taken) {
                                 if (!key.starts_with("sparse.")) return;
                                 EXPECT_TRUE(chosen.emplace(key, taken).second) << key;
                               }});
    for (const std::int64_t rows : {64, 128, 64}) step(rows);
  }
  for (const std::string pass : {"forward", "backward_input", "backward_weight"}) {
    for (const std::string rows : {"n64 ", "n128 "}) {
      EXPECT_EQ(std::ranges::count_if(
                    chosen, [&](const auto& choice) { return choice.first.starts_with(str("sparse.", pass, " linear ", rows)); }),
                1)
          << pass << ' ' << rows;
    }
  }
  for (auto& [key, taken] : chosen) taken = taken == "sparse" ? "dense" : "sparse";
  const DecisionScope scope({.measure = true, .known = chosen});
  step(64);
  std::size_t replayed = 0;
  for (const std::string& key : scope.log().replayed)
    replayed += key.starts_with("sparse.") && key.find(" n64 ") != std::string::npos;
  EXPECT_EQ(replayed, 3u);
  for (const std::string& key : scope.log().measured) EXPECT_FALSE(key.starts_with("sparse.")) << key;
}

}  // namespace
}  // namespace tessera
