#include "core/config/value.h"

#include <gtest/gtest.h>

#include "core/support/error.h"

namespace tessera {
namespace {

TEST(Value, KnowsItsKind) {
  EXPECT_EQ(Value().kind(), Value::Kind::null);
  EXPECT_EQ(Value(true).kind(), Value::Kind::boolean);
  EXPECT_EQ(Value(3).kind(), Value::Kind::integer);
  EXPECT_EQ(Value(3.0).kind(), Value::Kind::real);
  EXPECT_EQ(Value("3").kind(), Value::Kind::string);
  EXPECT_EQ(Value::list().kind(), Value::Kind::list);
  EXPECT_EQ(Value::map().kind(), Value::Kind::map);
  EXPECT_EQ(Value(3).as_double(), 3.0);
}

TEST(Value, RefusesAnotherKindWithItsMark) {
  const Value value = Value("a").with_mark({"x.yaml", 4, 2});
  try {
    value.as_int();
    FAIL() << "nothing was thrown";
  } catch (const ConfigError& error) {
    EXPECT_STREQ(error.what(), "x.yaml:4:2: expected an integer, found text");
  }
  EXPECT_THROW(Value(1.0).as_int(), ConfigError);
  EXPECT_THROW(Value(1).as_bool(), ConfigError);
  EXPECT_THROW(Value(1).as_string(), ConfigError);
  EXPECT_THROW(Value(1).as_list(), ConfigError);
  EXPECT_THROW(Value::list().as_map(), ConfigError);
  EXPECT_THROW(Value("1").as_double(), ConfigError);
}

TEST(Value, SetsFindsAndErasesKeys) {
  Value map = Value::map();
  map.set("b", 1);
  map.set("a", 2);
  map.set("b", 3);
  EXPECT_EQ(map.as_map()[0].key, "b");
  EXPECT_EQ(map.at("b").as_int(), 3);
  EXPECT_EQ(map.find("c"), nullptr);
  EXPECT_TRUE(map.erase("b"));
  EXPECT_FALSE(map.erase("b"));
  EXPECT_EQ(map.as_map().size(), 1u);
}

TEST(Value, NamesAMissingKey) {
  try {
    Value::map().with_mark({"x.yaml", 1, 1}).at("lr");
    FAIL() << "nothing was thrown";
  } catch (const ConfigError& error) {
    EXPECT_STREQ(error.what(), "x.yaml:1:1: required key 'lr' is missing");
  }
}

TEST(Value, ComparesContentOnly) {
  Value a = Value::map(), b = Value::map();
  a.set("x", 1);
  a.set("y", "t");
  b.set("y", Value("t").with_quotes().with_mark({"f", 1, 1}));
  EXPECT_NE(a, b);
  b.set("x", 1);
  EXPECT_EQ(a, b);
  EXPECT_NE(Value(1), Value(1.0));
  EXPECT_NE(Value::list({1, 2}), Value::list({2, 1}));
}

TEST(Mark, WritesPositionsWhereThereAreAny) {
  EXPECT_EQ(to_string(Mark{"x.yaml", 14, 3}), "x.yaml:14:3");
  EXPECT_EQ(to_string(Mark{"command line"}), "command line");
  EXPECT_EQ(to_string(Mark{}), "");
}

}  // namespace
}  // namespace tessera
