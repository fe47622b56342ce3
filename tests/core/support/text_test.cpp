#include "core/support/text.h"

#include <gtest/gtest.h>

#include "core/support/error.h"
#include "tests/support/message_of.h"

namespace tessera {
namespace {

using Rows = std::vector<std::vector<std::string>>;

TEST(Text, CsvFieldsReadBack) {
  const Rows rows{{"a", "", "b,c"}, {"say \"x\"", "two\nlines", "Zürich"}, {"\"", "\r", ","}};
  std::string text;
  for (const auto& row : rows) text += csv_field(row[0]) + ',' + csv_field(row[1]) + ',' + csv_field(row[2]) + '\n';
  EXPECT_EQ(parse_csv(text, "x.csv"), rows);
  EXPECT_EQ(csv_field("plain"), "plain");
  EXPECT_EQ(csv_field("say \"x\""), "\"say \"\"x\"\"\"");
}

TEST(Text, PartsBetweenSeparatorsMayBeEmpty) {
  using Parts = std::vector<std::string>;
  EXPECT_EQ(split("1,22,3", ','), (Parts{"1", "22", "3"}));
  EXPECT_EQ(split(",1,,", ','), (Parts{"", "1", "", ""}));
  EXPECT_EQ(split("1x2", ','), Parts{"1x2"});
  EXPECT_EQ(split("", ','), Parts{""});
}

TEST(Text, WordsAreQuotedWhereAShellWouldReadMore) {
  EXPECT_EQ(shell_word("runs/x/1"), "runs/x/1");
  EXPECT_EQ(shell_word("my runs"), "'my runs'");
  EXPECT_EQ(shell_word("it's"), "'it'\\''s'");
  EXPECT_EQ(shell_word("$HOME"), "'$HOME'");
  EXPECT_EQ(shell_word(""), "''");
}

TEST(Text, NumbersOfAnyLengthAreWrittenWhole) {
  EXPECT_EQ(formatted("%.2f", 0.125), "0.12");
  EXPECT_EQ(formatted("%.1f", 1e300).size(), 303u);
}

TEST(Text, NounsHaveTheirArticle) {
  EXPECT_EQ(with_article("linear"), "a linear");
  EXPECT_EQ(with_article("embedding"), "an embedding");
  EXPECT_EQ(with_article(""), "a ");
}

TEST(Text, CsvLinesMayEndInCarriageReturnsOrNotAtAll) {
  EXPECT_EQ(parse_csv("a,b\r\n1,2", "x.csv"), (Rows{{"a", "b"}, {"1", "2"}}));
  EXPECT_EQ(parse_csv("", "x.csv"), Rows{});
  EXPECT_EQ(parse_csv("\n", "x.csv"), Rows{{""}});
}

std::string fault_of(const char* text) {
  return message_of<IoError>([&] { parse_csv(text, "x.csv"); });
}

TEST(Text, CsvFaultsNameTheLine) {
  EXPECT_EQ(fault_of("a\n\"b\nc"), "x.csv:2: a quote is not closed");
  EXPECT_EQ(fault_of("a\nb\"c\n"), "x.csv:2: a field must end at a comma or at the line's end");
  EXPECT_EQ(fault_of("\"a\nb\"c\n"), "x.csv:2: a field must end at a comma or at the line's end");
}

TEST(Text, ColumnsAreAsWideAsTheirCells) {
  EXPECT_EQ(aligned({{"class", "n"}, {"Zürich", "7"}, {"a", "1234"}, {"short"}}, {false, true}),
            "class      n\n"
            "Zürich     7\n"
            "a       1234\n"
            "short\n");
  EXPECT_EQ(text_width("Zürich"), 6u);
}

TEST(Text, NumbersAsAsked) {
  EXPECT_EQ(formatted("%.2f", 0.125), "0.12");
  EXPECT_EQ(shortest(0.1), "0.1");
  EXPECT_EQ(shortest(1.0 / 3), "0.3333333333333333");
}

}  // namespace
}  // namespace tessera
