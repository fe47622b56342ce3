#include "core/nn/registry.h"

#include <gtest/gtest.h>

#include "tests/core/config/blocks.h"

namespace tessera {
namespace {

using namespace test;

struct Layer {
  virtual ~Layer() = default;
};
struct Ranked : Layer {
  using Config = Admm;
  explicit Ranked(const Config& given) : config(given) {}
  Config config;
};

Registry<Layer> layers() {
  Registry<Layer> registry("layer");
  registry.add<Ranked>("ranked");
  registry.add<Ranked>("other");
  return registry;
}

TEST(Registry, BuildsFromTheConfig) {
  const auto built = layers().build("ranked", json(R"({"ranks": [3]})"));
  EXPECT_EQ(dynamic_cast<Ranked&>(*built).config.ranks, std::vector<std::int64_t>{3});
  EXPECT_EQ(layers().names(), (std::vector<std::string_view>{"other", "ranked"}));
  EXPECT_EQ(layers().schema_of("ranked").size(), 3u);
}

TEST(Registry, NamesTheNearestAndAllKnown) {
  try {
    layers().build("rnaked", Value::map());
    FAIL() << "nothing was thrown";
  } catch (const ConfigError& error) {
    EXPECT_STREQ(error.what(), "unknown layer 'rnaked'; did you mean 'ranked'?; known: other ranked");
  }
}

TEST(Registry, ChecksWithoutBuilding) {
  std::vector<ConfigProblem> problems;
  layers().check("ranked", json(R"({"rnks": [3], "rho": 0})"), "model[0]", problems);
  ASSERT_EQ(problems.size(), 2u);
  EXPECT_EQ(to_string(problems[0]), "x.json: model[0].rho: is 0; must be greater than 0");
  EXPECT_EQ(to_string(problems[1]), "x.json: model[0].rnks: unknown key; did you mean 'ranks'?");
  EXPECT_THROW(layers().build("ranked", json(R"({"rho": 0})")), ConfigError);
}

TEST(Registry, RefusesANameTwice) {
  Registry<Layer> registry = layers();
  EXPECT_THROW(registry.add<Ranked>("ranked"), InternalError);
}

}  // namespace
}  // namespace tessera
