#include "train/run/json_lines.h"

#include <gtest/gtest.h>

#include "core/io/vfs.h"
#include "core/support/error.h"
#include "tests/core/io/temporary_folder.h"
#include "tests/support/message_of.h"

namespace tessera {
namespace {

class JsonLinesTest : public ::testing::Test {
 protected:
  static Value row(std::int64_t step) {
    Value value = Value::map();
    value.set("step", step);
    return value;
  }
  std::string content() { return real_vfs().read_file(path_); }
  std::string error_of(std::int64_t length) {
    return message_of<IoError>([&] { JsonLines(path_, length); });
  }

  TemporaryFolder folder_;
  std::string path_ = (folder_.path() / "m.jsonl").string();
};

TEST_F(JsonLinesTest, AppendsOneLineAtOnce) {
  JsonLines lines(path_, 0);
  EXPECT_EQ(lines.length(), 0);
  lines.append(row(1));
  EXPECT_EQ(content(), "{\"step\":1}\n");  // while the file is still open
  lines.append(row(20));
  EXPECT_EQ(content(), "{\"step\":1}\n{\"step\":20}\n");
  EXPECT_EQ(lines.length(), static_cast<std::int64_t>(content().size()));
}

TEST_F(JsonLinesTest, CutsBackToTheLengthOfTheCheckpoint) {
  std::int64_t checkpoint = 0;
  {
    JsonLines lines(path_, 0);
    lines.append(row(1));
    checkpoint = lines.length();
    lines.append(row(2));
  }
  JsonLines lines(path_, checkpoint);
  EXPECT_EQ(content(), "{\"step\":1}\n");
  lines.append(row(3));
  EXPECT_EQ(content(), "{\"step\":1}\n{\"step\":3}\n");
}

TEST_F(JsonLinesTest, ZeroStartsAnew) {
  JsonLines(path_, 0).append(row(1));
  JsonLines(path_, 0);
  EXPECT_EQ(content(), "");
}

TEST_F(JsonLinesTest, AShorterOrMissingFileIsAnErrorWithBothSizes) {
  EXPECT_EQ(error_of(11), path_ + " is missing; the checkpoint expects 11 bytes of it");
  JsonLines(path_, 0).append(row(1));
  EXPECT_EQ(error_of(12), path_ + ": holds 11 bytes, the checkpoint expects at least 12");
  EXPECT_EQ(content(), "{\"step\":1}\n");
  EXPECT_EQ(error_of(11), "");
}

TEST_F(JsonLinesTest, AreReadWithTheirPlaces) {
  write_file_atomically(real_vfs(), path_, "{\"step\":1}\n{\"step\":3}\n{\"step\":");
  const std::vector<JsonLine> lines = read_json_lines(real_vfs(), path_);
  ASSERT_EQ(lines.size(), 2u) << "the last line has no end yet";
  EXPECT_EQ(lines[1].value.at("step").as_int(), 3);
  EXPECT_EQ(lines[1].where, path_ + ":2");
}

TEST_F(JsonLinesTest, AFaultIsReadWithItsLine) {
  const auto message = [&](const std::string& text) {
    write_file_atomically(real_vfs(), path_, text);
    return message_of<IoError>([&] { read_json_lines(real_vfs(), path_); });
  };
  EXPECT_EQ(message("{}\n7\n"), path_ + ":2: is an integer; a line is a JSON object");
  EXPECT_TRUE(message("{}\n{}\n{\"step\": }\n").starts_with(path_ + ":3")) << message("{}\n{}\n{\"step\": }\n");
}

}  // namespace
}  // namespace tessera
