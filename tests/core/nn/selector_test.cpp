#include "core/nn/selector.h"

#include <gtest/gtest.h>

#include "core/support/error.h"
#include "tests/support/message_of.h"

namespace tessera::testing {
namespace {

TEST(Selector, FollowsTheTable) {
  struct Row {
    std::string_view pattern, path;
    bool matches;
  };
  const Row rows[]{
      {"conv1", "conv1", true},
      {"conv1", "layer1.0.conv1", false},  // the pattern must match the whole path
      {"*conv1", "layer1.0.conv1", true},
      {"*", "", true},
      {"*", "layer1.0.conv1", true},
      {"layer1.*", "layer1.0.conv1", true},  // a star crosses dots
      {"layer1.*", "layer10.0.conv1", false},
      {"layer?.0.conv1", "layer1.0.conv1", true},
      {"layer1?0.conv1", "layer1.0.conv1", false},  // a question mark is never a dot
      {"layer[23].*.conv*", "layer2.0.conv1", true},
      {"layer[23].*.conv*", "layer1.0.conv1", false},
      {"layer[23].*.conv*", "layer3.10.conv2", true},
      {"layer[1-3].conv", "layer2.conv", true},
      {"layer[1-3].conv", "layer4.conv", false},
      {"layer[!1].conv", "layer2.conv", true},
      {"layer[!1].conv", "layer1.conv", false},
      {"a[]]b", "a]b", true},
      {"*a*a*b", "aaaaaab", true},
      {"*a*a*b", "aaaaaac", false},
      {"", "", true},
      {"", "conv1", false},
      {"conv1**", "conv1", true},
      {"fc.", "fcx", false},  // a dot matches only a dot
      {"re:layer[23]\\.\\d+\\.conv[12]", "layer3.12.conv2", true},
      {"re:layer[23]", "layer2.0.conv1", false},
      {"re:.*conv.", "layer2.0.conv1", true},
  };
  for (const Row& row : rows) EXPECT_EQ(path_matches(row.pattern, row.path), row.matches) << row.pattern << " on " << row.path;
}

TEST(Selector, ManyStarsStayFast) {
  const std::string path(4000, 'a');
  std::string pattern;
  for (int i = 0; i < 50; ++i) pattern += "*a";
  EXPECT_FALSE(path_matches(pattern + "b", path));
}

const std::vector<std::string> kPaths{"conv1", "layer1.0.conv1", "layer1.0.conv2", "layer2.0.conv1", "fc"};

TEST(Selector, KeepsTheModelsOrder) {
  EXPECT_EQ(select("*conv1", kPaths), (std::vector<std::string>{"conv1", "layer1.0.conv1", "layer2.0.conv1"}));
  const std::vector<std::string> patterns{"layer2.*", "layer1.0.conv[1]", "layer?.0.conv1"};
  EXPECT_EQ(select(patterns, kPaths), (std::vector<std::string>{"layer1.0.conv1", "layer2.0.conv1"}));
}

TEST(Selector, NamesTheNearestPaths) {
  EXPECT_EQ(message_of<ConfigError>([] { select("layer3.0.conv1", kPaths); }),
            "selector 'layer3.0.conv1' matches no layer; nearest: layer1.0.conv1, layer2.0.conv1, layer1.0.conv2");
  const std::vector<std::string> one_of_two{"fc", "cnv1"};
  EXPECT_EQ(message_of<ConfigError>([&] { select(one_of_two, kPaths); }),
            "selector 'cnv1' matches no layer; nearest: conv1, fc, layer1.0.conv1");
  EXPECT_EQ(message_of<ConfigError>([] { select("*", std::vector<std::string>{}); }),
            "selector '*' matches no layer; there is none to match");
}

TEST(Selector, RefusesFaultyPatterns) {
  EXPECT_EQ(message_of<ConfigError>([] { path_matches("layer[23", "layer2"); }),
            "selector 'layer[23': '[' at position 6 has no ']'");
  EXPECT_EQ(message_of<ConfigError>([] { path_matches("re:(", "x"); }).find("selector 're:(': not a regular expression: "), 0u);
}

}  // namespace
}  // namespace tessera::testing
