// Damaged IDX and CIFAR files. A fault of the header or the length is found and named. These formats keep no checksum, so a
// fault of the data only changes the data set's fingerprint.
#include <random>

#include "tests/support/message_of.h"
#include "tests/train/data/data_files.h"
#include "train/data/cifar.h"
#include "train/data/idx.h"

namespace tessera {
namespace {

bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

std::string flipped(std::string bytes, std::size_t bit) {
  bytes[bit / 8] = static_cast<char>(bytes[bit / 8] ^ (1 << bit % 8));
  return bytes;
}

class DamagedData : public test::DataFiles {
 protected:
  // Writes these bytes to the file and returns what `read` says of it. Every message must begin with the file's path.
  template <class Read>
  std::string error_of(const std::string& name, const std::string& bytes, Read&& read) const {
    write(name, bytes);
    const std::string message = message_of<IoError>([&] { read(root_ / name); });
    EXPECT_TRUE(message.empty() || message.starts_with((root_ / name).string() + ": ")) << message;
    return message;
  }
};

class DamagedIdx : public DamagedData {
 protected:
  static std::string file_of(const std::vector<std::uint32_t>& sizes, const std::string& data) {
    std::string bytes{'\0', '\0', '\x08', static_cast<char>(sizes.size())};
    for (const std::uint32_t size : sizes) {
      for (int shift = 24; shift >= 0; shift -= 8) bytes += static_cast<char>(size >> shift & 255u);
    }
    return bytes + data;
  }
  static std::string images() { return file_of({5, 7, 11}, std::string(5 * 7 * 11, 'i')); }
  static std::string labels() { return file_of({5}, {'\0', '\3', '\7', '\11', '\1'}); }

  std::string idx_error(const std::string& bytes) const {
    return error_of("x", bytes, [](const auto& path) { read_idx(path); });
  }
  std::string compressed(const std::string& bytes) const {
    write_gz("compressed", bytes);
    std::ifstream in(root_ / "compressed", std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  MemoryDataset load(const std::string& image_bytes, const std::string& label_bytes) const {
    write("train-images-idx3-ubyte", image_bytes);
    write("train-labels-idx1-ubyte", label_bytes);
    return load_idx(root_, "mnist", "train");
  }
};

TEST_F(DamagedIdx, EveryBitOfTheHeaderCounts) {
  for (const auto& [bytes, header] : {std::pair(images(), 16), std::pair(labels(), 8)}) {
    for (int bit = 0; bit < 8 * header; ++bit) {
      const std::string message = idx_error(flipped(bytes, static_cast<std::size_t>(bit)));
      EXPECT_TRUE(contains(message, "expected") || contains(message, "the limit is")) << "bit " << bit << ": " << message;
    }
  }
}

TEST_F(DamagedIdx, EveryLengthButTheRightOneIsRefused) {
  for (const std::string& bytes : {images(), labels()}) {
    for (std::size_t length = 0; length < bytes.size(); ++length) {
      const std::string message = idx_error(bytes.substr(0, length));
      EXPECT_TRUE(contains(message, "truncated") && contains(message, "expected")) << length << ": " << message;
    }
    for (const std::size_t more : {std::size_t{1}, bytes.size()}) {
      EXPECT_TRUE(contains(idx_error(bytes + bytes.substr(0, more)), ": too long: ")) << more;
    }
  }
}

TEST_F(DamagedIdx, CompressedFilesAreCheckedToTheirLastByte) {
  const std::string bytes = compressed(images());
  EXPECT_EQ(idx_error(bytes), "");
  for (std::size_t length = 0; length < bytes.size(); ++length) EXPECT_NE(idx_error(bytes.substr(0, length)), "") << length;
  const Tensor whole = read_idx(root_ / "compressed");
  for (std::size_t bit = 0; bit < 8 * bytes.size(); ++bit) {
    if (!idx_error(flipped(bytes, bit)).empty()) continue;
    // Only bits that no reader looks at, such as the time in the header, may pass.
    EXPECT_EQ(read_idx(root_ / "x").to_vector<std::uint8_t>(), whole.to_vector<std::uint8_t>()) << "bit " << bit;
  }
}

TEST_F(DamagedIdx, AHeaderCannotMakeUsAllocateMoreThanTheFileCanHold) {
  const std::string message = idx_error(file_of({1u << 30, 15, 1}, "abc"));
  EXPECT_TRUE(contains(message, "truncated: the header says [1073741824, 15, 1]")) << message;
  EXPECT_TRUE(contains(message, "the whole file has 19")) << message;
}

TEST_F(DamagedIdx, ExchangedFilesAreRefused) {
  const auto error = [&](const std::string& image_bytes, const std::string& label_bytes) {
    return message_of<IoError>([&] { load(image_bytes, label_bytes); });
  };
  EXPECT_EQ(error(images(), labels()), "");
  EXPECT_TRUE(contains(error(labels(), images()), "train-images-idx3-ubyte: images are [5]; needs [n, h, w]"));
  EXPECT_TRUE(contains(error(images(), images()), "train-labels-idx1-ubyte: labels are [5, 7, 11]; needs [n]"));
  EXPECT_TRUE(contains(error(images(), file_of({4}, "\1\2\3\4")), "train-labels-idx1-ubyte: expected 5 labels"));
  EXPECT_TRUE(contains(error(compressed(labels()), labels()), "train-images-idx3-ubyte: images are [5]"));
}

TEST_F(DamagedIdx, ImagesWithoutPixelsAreRefused) {
  const std::string expected = "images are [5, 0, 11]; expected at least 1 pixel each, found 0";
  EXPECT_TRUE(contains(message_of<IoError>([&] { load(file_of({5, 0, 11}, ""), labels()); }), expected));
  EXPECT_NE(message_of<IoError>([&] { load(file_of({4'000'000'000u, 0, 0}, ""), labels()); }), "");
}

TEST_F(DamagedIdx, AChangedBitOfTheDataChangesTheFingerprint) {
  const std::string before = fingerprint(load(images(), labels()));
  std::mt19937 random(3);
  for (int i = 0; i < 1000; ++i) {
    const std::size_t bit = 16 * 8 + random() % (8 * (images().size() - 16));
    const MemoryDataset changed = load(flipped(images(), bit), labels());
    ASSERT_EQ(changed.images.shape(), (Shape{5, 7, 11, 1}));
    ASSERT_NE(fingerprint(changed), before) << "bit " << bit;
  }
  for (std::size_t bit = 8 * 8; bit < 8 * labels().size(); ++bit) {
    std::string after;
    const std::string message = message_of<IoError>([&] { after = fingerprint(load(images(), flipped(labels(), bit))); });
    EXPECT_TRUE(contains(message, str("label of record ", bit / 8 - 8, " is ")) || (message.empty() && after != before)) << bit;
  }
}

class DamagedCifar : public DamagedData {
 protected:
  static constexpr std::size_t kRecord = 1 + 3 * 32 * 32;
  static CifarLayout layout() {
    CifarLayout layout = cifar10_layout("test");
    layout.files = {"a.bin"};
    layout.records_per_file = 3;
    return layout;
  }
  static std::string records() {
    std::string bytes;
    for (const char label : {'\0', '\5', '\11'}) {
      bytes += label;
      bytes.append(kRecord - 1, static_cast<char>('p' + label));
    }
    return bytes;
  }
  std::string cifar_error(const std::string& bytes) const {
    return error_of("a.bin", bytes, [this](const auto&) { load_cifar(root_, "cifar10", layout()); });
  }
};

TEST_F(DamagedCifar, EveryLengthButTheRightOneIsRefused) {
  EXPECT_EQ(cifar_error(records()), "");
  const std::string expected = str("wrong size: expected ", 3 * kRecord, " bytes, found ");
  for (const std::size_t length :
       {std::size_t{0}, std::size_t{1}, std::size_t{1024}, kRecord - 1, kRecord, kRecord + 1, 2 * kRecord, 3 * kRecord - 1}) {
    EXPECT_TRUE(contains(cifar_error(records().substr(0, length)), str(expected, length)));
  }
  EXPECT_TRUE(contains(cifar_error(records() + 'x'), str(expected, 3 * kRecord + 1)));
  EXPECT_TRUE(contains(cifar_error(records() + records()), str(expected, 6 * kRecord)));
}

TEST_F(DamagedCifar, AFileOfTheOtherKindIsRefused) {
  write("a.bin", records());
  CifarLayout hundred = cifar100_layout("test");
  hundred.files = {"a.bin"};
  hundred.records_per_file = 3;
  const std::string message = message_of<IoError>([&] { load_cifar(root_, "cifar100", hundred); });
  EXPECT_TRUE(contains(message, "a.bin: wrong size: expected 9222 bytes, found 9219")) << message;
}

TEST_F(DamagedCifar, ALostByteShiftsTheLabelsOutOfRange) {
  std::string shifted = records();
  shifted.erase(100, 1);
  EXPECT_TRUE(contains(cifar_error(shifted + 'x'), "a.bin: label of record 1 is 117; must be in 0..9"));
}

TEST_F(DamagedCifar, AChangedBitIsAnIllegalLabelOrAnotherFingerprint) {
  const auto load = [this](const std::string& bytes) {
    write("a.bin", bytes);
    return load_cifar(root_, "cifar10", layout());
  };
  const std::string before = fingerprint(load(records()));
  std::mt19937 random(4);
  for (int i = 0; i < 1000; ++i) {
    const std::size_t bit = i < 24 ? i / 8 * 8 * kRecord + i % 8 : random() % (8 * records().size());  // the labels first
    std::string after;
    const std::string message = message_of<IoError>([&] { after = fingerprint(load(flipped(records(), bit))); });
    ASSERT_TRUE(contains(message, str("label of record ", bit / 8 / kRecord, " is ")) || (message.empty() && after != before));
  }
}

}  // namespace
}  // namespace tessera
