#include "train/config/scalar.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "core/support/error.h"
#include "tests/support/message_of.h"

namespace tessera {
namespace {

std::string error_of(std::string_view text) {
  return message_of<ConfigError>([&] { resolve_plain_scalar(text); });
}

TEST(PlainScalar, ReadsIntegers) {
  EXPECT_EQ(resolve_plain_scalar("0"), Value(0));
  EXPECT_EQ(resolve_plain_scalar("-0"), Value(0));
  EXPECT_EQ(resolve_plain_scalar("+17"), Value(17));
  EXPECT_EQ(resolve_plain_scalar("-9223372036854775808"), Value(INT64_MIN));
}

TEST(PlainScalar, ReadsReals) {
  for (const auto& [text, real] : std::initializer_list<std::pair<const char*, double>>{
           {"1.0", 1}, {"1.", 1}, {".5", 0.5}, {"-.5e1", -5}, {"1e-3", 1e-3}, {"1E+2", 100}, {"0.1", 0.1}, {"0e0", 0},
           {"+2.5", 2.5}}) {
    EXPECT_EQ(resolve_plain_scalar(text), Value(real)) << text;
  }
}

TEST(PlainScalar, ReadsTruthValuesAndNull) {
  EXPECT_EQ(resolve_plain_scalar("true"), Value(true));
  EXPECT_EQ(resolve_plain_scalar("false"), Value(false));
  for (const char* text : {"", "~", "null", "Null", "NULL"}) EXPECT_TRUE(resolve_plain_scalar(text).is_null()) << text;
}

TEST(PlainScalar, EverythingElseIsText) {
  for (const char* text : {"10e", "5000s", "20%", "1_000", "12abc", "12:30", "2020-01-01", "1.2.3", ".", "-", "+", "e5", "1e",
                           "1e+",
                           "y", "n", "0xg", "0x", "--1", "conv1", "-a", ".info", "nan", "inf", "cuda:1"}) {
    EXPECT_EQ(resolve_plain_scalar(text), Value(text));
  }
}

TEST(PlainScalar, RefusesOtherSpellingsOfTruth) {
  for (const char* text : {"yes", "Yes", "ON", "True", "tRue"}) {
    EXPECT_NE(error_of(text).find("write true"), std::string::npos) << text;
  }
  for (const char* text : {"no", "No", "off", "OFF", "False"}) {
    EXPECT_NE(error_of(text).find("write false"), std::string::npos) << text;
  }
}

TEST(PlainScalar, RefusesNumbersThatReadersDisagreeAbout) {
  EXPECT_EQ(error_of("010"), "'010' has a leading zero; write 10 for the number or '010' in quotes for the text");
  EXPECT_NE(error_of("-007").find("write -7 "), std::string::npos);
  EXPECT_NE(error_of("00").find("write 0 "), std::string::npos);
  EXPECT_NE(error_of("00.5").find("write 0.5 "), std::string::npos);
  for (const char* text : {"0x10", "0XfF", "0o17", "0b101", "-0x1"}) {
    EXPECT_NE(error_of(text).find("is not decimal"), std::string::npos) << text;
  }
  for (const char* text : {".inf", "-.INF", "+.Inf", ".nan", ".NaN"}) {
    EXPECT_NE(error_of(text).find("finite"), std::string::npos) << text;
  }
}

TEST(PlainScalar, RefusesNumbersThatDoNotFit) {
  EXPECT_EQ(error_of("9223372036854775808"), "9223372036854775808 does not fit in a 64-bit integer");
  EXPECT_EQ(error_of("1e999"), "1e999 does not fit in a double");
}

TEST(ExpandEnvironment, ReplacesEachReference) {
  setenv("TESSERA_TEST_A", "x", 1);
  setenv("TESSERA_TEST_EMPTY", "", 1);
  setenv("TESSERA_TEST_NESTED", "${TESSERA_TEST_A}", 1);
  EXPECT_EQ(expand_environment("${TESSERA_TEST_A}/${TESSERA_TEST_A}${TESSERA_TEST_EMPTY}!"), "x/x!");
  EXPECT_EQ(expand_environment("${TESSERA_TEST_NESTED}"), "${TESSERA_TEST_A}") << "values are taken as they are";
  EXPECT_EQ(expand_environment("$HOME $$ $${HOME} $$${TESSERA_TEST_A}"), "$HOME $$ ${HOME} $${TESSERA_TEST_A}");
}

TEST(ExpandEnvironment, RefusesUnsetAndMalformedReferences) {
  for (const char* text : {"${", "${}", "${A", "${1A}", "${A-b}", "${A B}"}) {
    EXPECT_THROW(expand_environment(text), ConfigError) << text;
  }
  try {
    expand_environment("a${TESSERA_TEST_UNSET}");
    FAIL() << "nothing was thrown";
  } catch (const ConfigError& error) {
    EXPECT_STREQ(error.what(), "environment variable TESSERA_TEST_UNSET is not set");
  }
}

}  // namespace
}  // namespace tessera
