#include "train/report/tensorboard/event_file.h"

#include <gtest/gtest.h>

#include <limits>
#include <vector>

#include "tests/support/hex.h"

namespace tessera {
namespace {

using testing::hex;

// The bytes that add_scalars appends to the file.
std::string gained(EventFile& file, const std::vector<EventScalar>& scalars, std::int64_t step) {
  const std::size_t before = file.bytes().size();
  file.add_scalars(step, scalars);
  return hex(std::string_view(file.bytes()).substr(before));
}

TEST(EventFile, ChecksumsAreThoseOfRfc3720) {
  EXPECT_EQ(crc32c("123456789"), 0xe3069283u);
  EXPECT_EQ(crc32c(std::string(32, '\0')), 0x8a9136aau);
  EXPECT_EQ(crc32c(std::string(32, '\xff')), 0x62a8ab43u);
  EXPECT_EQ(crc32c(""), 0u);
}

// The same bytes as from tensorboard's own writer.
TEST(EventFile, BeginsWithItsVersion) {
  EXPECT_EQ(hex(EventFile(1.0).bytes()), "1800000000000000a37f4b2209000000000000f03f1a0d627261696e2e4576656e743a3286bf577a");
}

TEST(EventFile, AScalarIsARecord) {
  EventFile file(2.0);
  EXPECT_EQ(gained(file, {{"loss", 0.5}}, 3),
            "1a00000000000000129bd82d09000000000000004010032a0d0a0b0a046c6f7373150000003fbac36b94");
}

TEST(EventFile, ScalarsOfAStepShareOneAndLargeNumbersTakeSeveralBytes) {
  EventFile file(2.0);
  const std::string two = gained(file, {{"a", 1.0}, {"b", std::numeric_limits<double>::infinity()}}, 300);
  EXPECT_NE(two.find("10ac022a14"  // step 300, a summary of 20 bytes
                     "0a080a0161150000803f"
                     "0a080a0162150000807f"),
            std::string::npos)
      << two;
  EXPECT_EQ(gained(file, {{"a", 1.0}}, 0).find("1000"), std::string::npos) << "step 0 is none";
}

}  // namespace
}  // namespace tessera
