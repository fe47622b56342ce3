// The rivals of sparse products compute what our ops do, on small shapes. Without a GPU only the choice of cases is tested.
#include "bench/cases/cuda_sparse.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "bench/rivals/cusparse_rival.h"
#include "tests/support/gpu.h"

namespace tessera::bench {
namespace {

using testing::GpuTest;

const PatternConfig kSingle{.pattern = "unstructured"};

class CudaSparse : public GpuTest {};

Value measured(ConvPass pass, const SparseProductCase& of, const std::string& precision) {
  SCOPED_TRACE(str(to_string(of), ' ', to_string(pass), ' ', precision));
  const DecisionScope decisions({.measure = true, .forced = way_of(of.pattern)});
  const RotatedCase rotated = cuda_sparse_case(pass, of, sparse_mask(of), precision, Device::cuda());
  Value row = measure_rotated(rotated, Device::cuda(), 2);  // throws if no rival agrees
  EXPECT_EQ(row.at("ways").as_list().size(), 1u);
  EXPECT_GT(row.at("dense_ratio").at("median").as_double(), 0);
  EXPECT_EQ(row.at("rivals_refused").as_list().size(), rotated.unsupported.size())
      << "what can be called agrees: " << to_json(row);
  return row;
}

TEST_F(CudaSparse, ProductsOfSingleWeightsAgree) {
  for (const char* precision : {"f32", "bf16", "f16"}) {
    for (const ConvPass pass : {ConvPass::forward, ConvPass::backward_input}) {
      EXPECT_GT(measured(pass, {kSingle, .1, {57, 64, 48}}, precision).at("ratio").at("median").as_double(), 0);
    }
  }
}

TEST_F(CudaSparse, ProductsOfBlocksAgreeInEveryFormat) {
  const SparseProductCase of{{.pattern = "block", .block = Extent{16, 16}}, .25, {64, 128, 96}};
  for (const char* precision : {"f32", "bf16", "f16"}) {
    for (const ConvPass pass : {ConvPass::forward, ConvPass::backward_input}) {
      const Value row = measured(pass, of, precision);
      const Value::List& refused = row.at("rivals_refused").as_list();
      EXPECT_EQ(row.at("rivals_timed").as_int() + std::ssize(refused), pass == ConvPass::forward ? 10 : 14) << "in both layouts";
      for (const Value& each : refused) {
        const std::string& name = each.at("name").as_string();
        EXPECT_TRUE(name.ends_with(", row-major") && name != "cuSPARSE CSR, algorithm 2, row-major") << to_json(each);
      }
    }
  }
}

TEST_F(CudaSparse, TilesAgree) { measured(ConvPass::forward, {{.pattern = "tile", .group = 64}, .5, {64, 128, 192}}, "bf16"); }

TEST_F(CudaSparse, GradientsOfValuesAgree) {
  const SparseProductCase blocks{{.pattern = "block", .block = Extent{16, 16}}, .25, {64, 128, 96}};
  EXPECT_TRUE(measured(ConvPass::backward_weight, {kSingle, .1, {57, 64, 48}}, "f32").find("ratio"));
  EXPECT_TRUE(measured(ConvPass::backward_weight, {kSingle, .1, {57, 64, 48}}, "f16").find("ratio"));
  EXPECT_TRUE(measured(ConvPass::backward_weight, blocks, "f32").find("ratio"));
  EXPECT_TRUE(measured(ConvPass::backward_weight, blocks, "bf16").find("ratio")) << "in BSR there is bf16";
}

TEST_F(CudaSparse, WhatTheLibraryRefusesIsSaidInItsWords) {
  const Value row = measured(ConvPass::backward_weight, {kSingle, .1, {57, 64, 48}}, "bf16");  // the library has no bf16 in CSR
  EXPECT_EQ(row.find("ratio"), nullptr);
  const Value::List& refused = row.at("rivals_refused").as_list();
  ASSERT_EQ(refused.size(), 3u);
  EXPECT_TRUE(refused.front().at("name").as_string().starts_with("cuSPARSE SDDMM, CSR"));
  EXPECT_TRUE(refused.front().at("why").as_string().starts_with("cusparseSDDMM"));
}

TEST(CudaSparseCases, AreSputniksSquaresMobileNetsLayersBlocksAndTilesOfBert) {
  const std::vector<SparseProductCase> cases = cuda_sparse_cases();
  const auto count = [&](const auto& which) { return std::ranges::count_if(cases, which); };
  const auto single = [](const SparseProductCase& of) { return of.pattern.pattern == "unstructured"; };
  const auto square = [](const SparseProductCase& of) { return of.shape.rows == of.shape.in && of.shape.in == of.shape.out; };
  EXPECT_EQ(cases.size(), 70u);
  EXPECT_EQ(count([&](const SparseProductCase& of) { return single(of) && square(of); }), 25);
  EXPECT_EQ(count([&](const SparseProductCase& of) { return single(of) && !square(of); }), 9);
  EXPECT_EQ(count([](const SparseProductCase& of) { return of.pattern.pattern == "block"; }), 12);
  EXPECT_EQ(count([](const SparseProductCase& of) { return of.pattern.pattern == "tile"; }), 24);
  std::set<std::string> names;
  for (const SparseProductCase& of : cases) names.insert(to_string(of));
  EXPECT_EQ(names.size(), cases.size());
  EXPECT_TRUE(names.contains("512x512 -> 512, unstructured, density 0.25"));
  EXPECT_TRUE(names.contains("49x1024 -> 1024, unstructured, density 0.1"));
  EXPECT_TRUE(names.contains("4096x4096 -> 4096, block 32x32, density 0.5"));
  EXPECT_TRUE(names.contains("12800x768 -> 3072, tile 64, density 0.25"));
  EXPECT_EQ(to_string(cases.back()), "8192x8192 -> 8192, unstructured, density 0.05");
}

TEST(CudaSparseCases, MasksHaveTheDensityThatTheyAreAskedFor) {
  std::set<std::string> seen;
  for (const SparseProductCase& of : cuda_sparse_cases()) {
    const bool small = of.shape.in * of.shape.out <= 1024 * 1024;
    if (!small || !seen.insert(str(of.pattern.pattern, of.density, of.shape.in, of.shape.out)).second) continue;
    const Tensor mask = sparse_mask(of);
    EXPECT_EQ(mask.shape(), (Shape{of.shape.out, of.shape.in}));
    EXPECT_EQ(mask.dtype(), DType::u8);
    // Single weights give the nearest count, blocks the nearest that fits, and tiles two steps of whole vectors.
    const double block = of.pattern.block ? static_cast<double>(of.pattern.block->h * of.pattern.block->w) : 0.5;
    const double tolerance = of.pattern.pattern == "tile" ? 2e-3 : block / static_cast<double>(mask.numel());
    EXPECT_NEAR(density_of(mask), of.density, tolerance * (1 + 1e-9)) << to_string(of);
  }
}

TEST(CudaSparseCases, TheClocksOrTheForcedWayIsTold) {
  EXPECT_EQ(way_of(kSingle), "sparse");
  EXPECT_EQ(way_of({.pattern = "tile"}), "pieces");
  const std::vector<std::string> names{"sparse", "dense"};
  const DecisionScope forced({.forced = "sparse"});
  EXPECT_EQ(execution_of(forced, "sparse"), "not decided");
  decide("cuda.conv2d forward", std::vector<std::string>{"first"}, {});
  EXPECT_EQ(execution_of(forced, "sparse"), "not decided");
  decide("cuda.sparse.forward", names, {});
  EXPECT_EQ(execution_of(forced, "sparse"), "sparse");
  const DecisionScope measured({.measure = true});
  decide("cuda.sparse.forward", names, [](std::size_t i) { return i == 0 ? 2.0 : 1.0; });
  EXPECT_EQ(execution_of(measured, "pieces"), "dense");
}

TEST(CuSparse, ItsVersionIsKnownWithoutAGpu) {
  EXPECT_TRUE(cusparse_version().starts_with("cuSPARSE 12.")) << cusparse_version();
}

}  // namespace
}  // namespace tessera::bench
