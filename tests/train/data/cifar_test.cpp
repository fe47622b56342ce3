#include "train/data/cifar.h"

#include "tests/support/message_of.h"
#include "tests/train/data/data_files.h"

namespace tessera {
namespace {

class Cifar : public test::DataFiles {};

constexpr std::int64_t kPlane = 32 * 32;

CifarLayout small_layout(int label_bytes) {
  CifarLayout layout = label_bytes == 1 ? cifar10_layout("train") : cifar100_layout("train");
  layout.files = {"a.bin", "b.bin"};
  layout.records_per_file = 3;
  return layout;
}

// Three records. Pixel i of plane c of record r is (r + 5c + i) % 251.
std::string records(const std::string& label) {
  std::string bytes;
  for (int r = 0; r < 3; ++r) {
    bytes += label;
    for (int c = 0; c < 3; ++c) {
      for (int i = 0; i < kPlane; ++i) bytes += static_cast<char>((r + 5 * c + i) % 251);
    }
  }
  return bytes;
}

TEST_F(Cifar, PlanesBecomePixels) {
  write("a.bin", records("\x03"));
  write("b.bin", records("\x09"));
  const MemoryDataset data = load_cifar(root_, "cifar10", small_layout(1));
  ASSERT_EQ(data.images.shape(), (Shape{6, 32, 32, 3}));
  EXPECT_EQ(data.labels.to_vector<std::int64_t>(), (std::vector<std::int64_t>{3, 3, 3, 9, 9, 9}));
  const auto pixels = data.images.to_vector<std::uint8_t>();
  for (const std::size_t at : {0u, 31u, 32u, 777u, 1023u}) {
    for (std::size_t c = 0; c < 3; ++c) EXPECT_EQ(pixels[(4 * kPlane + at) * 3 + c], (1 + 5 * c + at) % 251);
  }
}

TEST_F(Cifar, TheFineLabelOfCifar100Counts) {
  write("a.bin", records("\x13\x63"));
  write("b.bin", records("\x13\x01"));
  const MemoryDataset data = load_cifar(root_, "cifar100", small_layout(2));
  EXPECT_EQ(data.labels.to_vector<std::int64_t>(), (std::vector<std::int64_t>{99, 99, 99, 1, 1, 1}));
  EXPECT_EQ(data.classes.size(), 100u);
  EXPECT_EQ(data.classes[99], "worm");
}

TEST_F(Cifar, RefusesAnotherSize) {
  write("a.bin", records("\x03"));
  write("b.bin", records("\x03") + "x");
  const std::string message = message_of<IoError>([&] { load_cifar(root_, "cifar10", small_layout(1)); });
  EXPECT_NE(message.find("b.bin: wrong size: expected 9219 bytes, found 9220"), std::string::npos) << message;
}

TEST_F(Cifar, NamesAMissingFile) {
  write("a.bin", records("\x03"));
  const std::string message = message_of<IoError>([&] { load_cifar(root_, "cifar10", small_layout(1)); });
  EXPECT_NE(message.find("b.bin: cannot open"), std::string::npos) << message;
}

TEST_F(Cifar, NamesTheRecordOfABadLabel) {
  std::string bytes = records("\x03");
  bytes[3073] = '\x0a';
  write("a.bin", bytes);
  const std::string message = message_of<IoError>([&] { load_cifar(root_, "cifar10", small_layout(1)); });
  EXPECT_NE(message.find("a.bin: label of record 1 is 10; must be in 0..9"), std::string::npos) << message;
}

}  // namespace
}  // namespace tessera
