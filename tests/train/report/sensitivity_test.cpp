// The `prune` block that a sensitivity report suggests.
#include "train/report/sensitivity.h"

#include <gtest/gtest.h>

namespace tessera::testing {
namespace {

SensitivityReport report(std::vector<WeightSensitivity> weights) {
  SensitivityReport report;
  report.run = "runs/tiny/1";
  report.pattern = "unstructured";
  report.sparsities = {0.5, 0.9};
  report.layers = std::move(weights);
  return report;
}

std::string suggestion_of(const SensitivityReport& report) {
  const std::string text = to_text(report);
  const std::size_t begin = text.find("\nprune:\n");
  return begin == std::string::npos ? "" : text.substr(begin + 1);
}

WeightSensitivity weight(const std::string& path, double suggested, std::int64_t kept = 100) {
  return {.path = path,
          .layer = path.substr(0, path.rfind('.')),
          .weights = 100,
          .kept = kept,
          .values = {0.7, 0.6},
          .suggested = suggested};
}

// A `prune` block has one target for all weights of a layer.
TEST(SensitivityReport, SuggestsTheLeastTargetOfALayersWeights) {
  const SensitivityReport mixed = report({weight("conv1.weight", 0.5), weight("conv2.in_factor", 0.9), weight("conv2.core", 0.75),
                                          weight("conv2.out_factor", 0.9), weight("fc.weight", 0.9)});
  EXPECT_EQ(suggestion_of(mixed),
            "prune:\n  layers: [conv1, conv2, fc]\n  sparsity:\n    target: 0.5\n    targets:\n"
            "      - {layers: conv2, target: 0.75}\n      - {layers: fc, target: 0.9}\n");
  const SensitivityReport sensitive =
      report({weight("conv2.in_factor", 0.9), weight("conv2.out_factor", 0), weight("fc.weight", 0.5)});
  EXPECT_EQ(suggestion_of(sensitive), "prune:\n  layers: [fc]\n  sparsity:\n    target: 0.5\n");
}

TEST(SensitivityReport, SuggestsNothingForLayersThatAreAtTheirTarget) {
  EXPECT_EQ(suggestion_of(report({weight("conv1.weight", 0.5, 50)})), "");
  EXPECT_EQ(suggestion_of(report({weight("conv1.in_factor", 0.5, 50), weight("conv1.out_factor", 0.5, 51)})),
            "prune:\n  layers: [conv1]\n  sparsity:\n    target: 0.5\n");
}

TEST(SensitivityReport, NamesWhatIsLeftOut) {
  SensitivityReport some = report({weight("conv1.weight", 0.5)});
  some.left_out = {"fc1 is sparse already (prune before sparsify)"};
  EXPECT_NE(to_text(some).find("\nleft out: fc1 is sparse already (prune before sparsify)\n"), std::string::npos)
      << to_text(some);
}

}  // namespace
}  // namespace tessera::testing
