#include "train/config/yaml_writer.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>
#include <limits>

#include "core/support/error.h"
#include "tests/core/config/values.h"
#include "train/config/yaml.h"

namespace tessera {
namespace {

TEST(ToYaml, WritesBlocksAndInlineLists) {
  const std::string text =
      "version: 1\n"
      "name: resnet20-cifar10\n"
      "lr: 0.1\n"
      "quoted: \"5\"\n"
      "stages:\n"
      "  - name: a\n"
      "    mean: [0.5, 1.0]\n"
      "  - {}\n"
      "  - - [1]\n"
      "    - b: true\n"
      "none: null\n"
      "empty: []\n";
  EXPECT_EQ(to_yaml(parse_yaml(text, "x.yaml")), text);
}

RC_GTEST_PROP(ToYaml, ReadsBackToAnEqualValue, ()) {
  const Value value = test::any_value();
  const std::string text = to_yaml(value);
  RC_LOG() << text;
  RC_ASSERT(parse_yaml(text, "x.yaml") == value);
}

RC_GTEST_PROP(ToYaml, KeepsEveryText, ()) {
  const std::string text = *test::any_text();
  RC_ASSERT(parse_yaml(to_yaml(text), "x.yaml") == Value(text));
  RC_ASSERT(parse_yaml(to_yaml(Value::list({text, text})), "x.yaml") == Value::list({text, text}));
}

TEST(ToYaml, RefusesWhatCannotBeReadBack) {
  EXPECT_THROW(to_yaml(std::numeric_limits<double>::infinity()), ConfigError);
  EXPECT_THROW(to_yaml(Value::list({std::nan("")})), ConfigError);
  Value map = Value::map();
  map.set("", 1);
  EXPECT_THROW(to_yaml(map), ConfigError);
}

}  // namespace
}  // namespace tessera
