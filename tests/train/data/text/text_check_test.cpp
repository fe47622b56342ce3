#include "train/data/text/text_check.h"

#include <gtest/gtest.h>

#include "core/config/read.h"
#include "tests/support/scopes.h"
#include "tests/train/data/text/tokenizer_files.h"
#include "train/config/yaml.h"

namespace tessera {
namespace {

class TextCheck : public TokenizerFiles {
  const testing::VariableScope cache_{"TESSERA_CACHE", ""};
};

TEST_F(TextCheck, CountsBytesTokensAndWhatIsUnknown) {
  TextDataConfig config;
  config.files = {write("a.txt", "the tokens \xe2\x98\x83 the tokens\n"),
                  write("b.txt", std::string(40, ' ') + "the the the the\n")};
  config.tokenizer = parse_yaml("{wordpiece: {vocab: " + wordpiece_vocab() + "}}", "x.yaml");
  config.sequence = 2;
  config.split = {60, 40, 0};
  const TextReport report = check_text(config, 1);
  EXPECT_TRUE(report.clean());
  ASSERT_EQ(report.files.size(), 2u);
  EXPECT_EQ(report.files[0].bytes, 26);
  EXPECT_EQ(report.files[0].unknown, 1);
  EXPECT_EQ(report.files[1].tokens, 4);
  ASSERT_EQ(report.splits.size(), 2u) << "none of the test split, which is empty";
  const std::int64_t all = report.files[0].tokens + 1 + report.files[1].tokens;  // a [SEP] between the two
  EXPECT_EQ(report.splits[0].tokens + report.splits[1].tokens, all);
  const Value value = tessera::write(report);
  EXPECT_EQ(value.at("files").as_list()[0].at("unknown").as_int(), 1);
  EXPECT_NE(to_text(report).find(": clean\n"), std::string::npos);
}

TEST_F(TextCheck, FilesThatAreThereTwiceAreNotClean) {
  TextDataConfig config;
  config.files = {write("a.txt", std::string(50, 'a')), write("b.txt", "bbb"), write("c.txt", std::string(50, 'a')),
                  write("d.txt", std::string(50, 'd'))};
  config.sequence = 8;
  const TextReport report = check_text(config, 1);
  EXPECT_FALSE(report.clean());
  EXPECT_EQ(report.files[0].same_as, "");
  EXPECT_EQ(report.files[2].same_as, config.files[0]);
  EXPECT_EQ(report.files[3].same_as, "") << "as long, but other bytes";
  EXPECT_NE(to_text(report).find(config.files[2] + " has the bytes of " + config.files[0]), std::string::npos);
  EXPECT_NE(to_text(report).find("not clean"), std::string::npos);
}

}  // namespace
}  // namespace tessera
