#include "train/data/idx.h"

#include "tests/support/message_of.h"
#include "tests/train/data/data_files.h"

namespace tessera {
namespace {

class Idx : public test::DataFiles {};

std::string header(unsigned char rank, const std::vector<std::uint32_t>& sizes) {
  std::string bytes{'\0', '\0', '\x08', static_cast<char>(rank)};
  for (const std::uint32_t size : sizes) {
    for (int shift = 24; shift >= 0; shift -= 8) bytes += static_cast<char>(size >> shift & 255u);
  }
  return bytes;
}

std::string images() {  // 3 images of 2x3: bytes 0..17
  std::string bytes = header(3, {3, 2, 3});
  for (int i = 0; i < 18; ++i) bytes += static_cast<char>(i);
  return bytes;
}
std::string labels() { return header(1, {3}) + std::string{'\x07', '\0', '\x09'}; }

bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

TEST_F(Idx, ReadsPlainAndCompressedFilesAlike) {
  write("train-images-idx3-ubyte", images());
  write_gz("train-labels-idx1-ubyte.gz", labels());
  const MemoryDataset data = load_idx(root_, "fashion-mnist", "train");
  EXPECT_EQ(data.images.shape(), (Shape{3, 2, 3, 1}));
  EXPECT_EQ(data.images.to_vector<std::uint8_t>()[17], 17);
  EXPECT_EQ(data.labels.to_vector<std::int64_t>(), (std::vector<std::int64_t>{7, 0, 9}));
  EXPECT_EQ(data.classes[9], "Ankle boot");
}

TEST_F(Idx, ReadsTheDottedSpellingOfTheTestSplit) {
  write("t10k-images.idx3-ubyte", images());
  write("t10k-labels.idx1-ubyte", labels());
  EXPECT_EQ(load_idx(root_, "mnist", "test").size(), 3);
}

TEST_F(Idx, NamesTheFilesItLookedFor) {
  const std::string message = message_of<IoError>([&] { load_idx(root_, "mnist", "train"); });
  EXPECT_TRUE(contains(message, "train-images-idx3-ubyte, train-images-idx3-ubyte.gz, train-images.idx3-ubyte")) << message;
}

TEST_F(Idx, RefusesTruncatedData) {
  write("x", images().substr(0, 16 + 11));
  const std::string message = message_of<IoError>([&] { read_idx(root_ / "x"); });
  EXPECT_TRUE(contains(message, "x: truncated: the header says [3, 2, 3], expected 18 bytes of data, found 11")) << message;
}

TEST_F(Idx, RefusesATruncatedHeader) {
  write("x", images().substr(0, 9));
  const std::string message = message_of<IoError>([&] { read_idx(root_ / "x"); });
  EXPECT_TRUE(contains(message, "truncated IDX header: expected 16 bytes, found 9")) << message;
}

TEST_F(Idx, RefusesTrailingBytes) {
  write_gz("x.gz", images() + "abc");
  const std::string message = message_of<IoError>([&] { read_idx(root_ / "x.gz"); });
  EXPECT_TRUE(contains(message, "too long: the header says [3, 2, 3], expected 18 bytes of data, found 21")) << message;
}

TEST_F(Idx, RefusesAnotherMagicNumber) {
  write("x", "PNG and more");
  const std::string message = message_of<IoError>([&] { read_idx(root_ / "x"); });
  EXPECT_TRUE(contains(message, "not an IDX file of unsigned bytes: magic number is 1347307296")) << message;
}

TEST_F(Idx, RefusesSizesNoDataSetHas) {
  write("x", header(3, {0xffffffffu, 0xffffffffu, 0xffffffffu}));
  const std::string message = message_of<IoError>([&] { read_idx(root_ / "x"); });
  EXPECT_TRUE(contains(message, "the limit is")) << message;
}

TEST_F(Idx, RefusesDamagedCompression) {
  write_gz("x.gz", images());
  std::string bytes;
  {
    std::ifstream in(root_ / "x.gz", std::ios::binary);
    bytes.assign(std::istreambuf_iterator<char>(in), {});
  }
  write("x.gz", bytes.substr(0, bytes.size() - 12));
  const std::string message = message_of<IoError>([&] { read_idx(root_ / "x.gz"); });
  EXPECT_TRUE(contains(message, "x.gz: ")) << message;
}

TEST_F(Idx, RefusesCountsThatDiffer) {
  write("train-images-idx3-ubyte", images());
  write("train-labels-idx1-ubyte", header(1, {2}) + std::string(2, '\0'));
  const std::string message = message_of<IoError>([&] { load_idx(root_, "mnist", "train"); });
  EXPECT_TRUE(contains(message, "expected 3 labels")) << message;
  EXPECT_TRUE(contains(message, "found 2")) << message;
}

TEST_F(Idx, RefusesALabelOutOfRange) {
  write("train-images-idx3-ubyte", images());
  write("train-labels-idx1-ubyte", header(1, {3}) + std::string{'\0', '\x0a', '\0'});
  const std::string message = message_of<IoError>([&] { load_idx(root_, "mnist", "train"); });
  EXPECT_TRUE(contains(message, "label of record 1 is 10; must be in 0..9")) << message;
}

}  // namespace
}  // namespace tessera
