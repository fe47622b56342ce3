#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <bit>
#include <limits>

#include "core/support/error.h"
#include "tests/core/config/values.h"
#include "tests/support/message_of.h"

namespace tessera {
namespace {

std::string error_of(std::string_view text) {
  return message_of<IoError>([&] { parse_json(text, "m.json"); });
}

TEST(Json, WritesCompactAndIndented) {
  Value value = Value::map();
  value.set("a", Value::list({1, 2.0, Value(), true, "x\n"}));
  value.set("b", Value::map());
  EXPECT_EQ(to_json(value), R"({"a":[1,2.0,null,true,"x\n"],"b":{}})");
  EXPECT_EQ(to_json(value, 2), "{\n  \"a\": [\n    1,\n    2.0,\n    null,\n    true,\n    \"x\\n\"\n  ],\n  \"b\": {}\n}");
}

RC_GTEST_PROP(Json, ReadsBackWhatItWrites, ()) {
  const Value value = test::any_value();
  RC_ASSERT(parse_json(to_json(value), "m.json") == value);
  RC_ASSERT(parse_json(to_json(value, 2), "m.json") == value);
}

RC_GTEST_PROP(Json, KeepsTheBitsOfReals, ()) {
  const double real = *rc::gen::suchThat(test::any_real(), [](double x) { return std::isfinite(x); });
  const double back = parse_json(to_json(real), "m.json").as_double();
  RC_ASSERT(std::bit_cast<std::uint64_t>(back) == std::bit_cast<std::uint64_t>(real));
}

TEST(Json, WritesTheShortestReal) {
  EXPECT_EQ(to_json(0.1), "0.1");
  EXPECT_EQ(to_json(5e-324), "5e-324");
  EXPECT_EQ(to_json(-0.0), "-0.0");
}

TEST(Json, WritesNumbersThatAreNotFiniteAsText) {
  EXPECT_EQ(to_json(std::numeric_limits<double>::quiet_NaN()), "\"nan\"");
  EXPECT_EQ(to_json(std::numeric_limits<double>::infinity()), "\"inf\"");
  EXPECT_EQ(to_json(-std::numeric_limits<double>::infinity()), "\"-inf\"");
}

TEST(Json, RefusesTextThatIsNotUtf8) {
  EXPECT_THROW(to_json("\xff"), IoError);
  EXPECT_NE(error_of("\"\xff\""), "");
}

TEST(Json, RefusesRepeatedKeys) {
  EXPECT_EQ(error_of(R"({"a": 1, "b": {"a": 2}, "a": 3})"), "m.json: key 'a' is repeated");
  EXPECT_EQ(error_of(R"({"a": 1, "b": {"a": 2}})"), "");
}

TEST(Json, RefusesDepthOverTheLimit) {
  EXPECT_EQ(error_of(std::string(64, '[') + std::string(64, ']')), "");
  EXPECT_EQ(error_of(std::string(65, '[') + std::string(65, ']')), "m.json: nested deeper than 64");
  EXPECT_EQ(error_of(std::string(1'000'000, '[')), "m.json: nested deeper than 64");
}

TEST(Json, RefusesIntegersOver64Bits) {
  EXPECT_EQ(parse_json("-9223372036854775808", "m.json").as_int(), INT64_MIN);
  EXPECT_EQ(error_of("9223372036854775808"), "m.json: integer 9223372036854775808 does not fit in 64 bits");
  EXPECT_EQ(error_of("99999999999999999999"), "m.json: integer 99999999999999999999 does not fit in 64 bits");
  EXPECT_NE(error_of("1e999"), "");
}

TEST(Json, RefusesBrokenText) {
  for (const char* text : {"", " ", "{", "{} {}", "[1,]", "{a: 1}", "nul", "[1] x", "01", "\"\\x\""}) {
    EXPECT_NE(error_of(text), "") << text;
  }
  EXPECT_NE(error_of("{\n}}").find("m.json: parse error at line 2, column 2"), std::string::npos) << error_of("{\n}}");
}

TEST(Json, MarksNodesWithTheirOrigin) { EXPECT_EQ(to_string(parse_json("[1]", "m.json").as_list()[0].mark()), "m.json"); }

}  // namespace
}  // namespace tessera
