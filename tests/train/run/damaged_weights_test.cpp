// model.weights from damaged files. A fault that structure or checksum shows is found and named before the network changes.
#include <gtest/gtest.h>

#include <cstring>
#include <limits>
#include <random>

#include "core/support/error.h"
#include "core/support/hash.h"
#include "tests/core/io/temporary_folder.h"
#include "tests/train/run/weights_files.h"
#include "train/checkpoint/manifest.h"
#include "train/run/import_weights.h"

namespace tessera {
namespace {

using testing::counting;

constexpr const char* kLayers = R"([{"conv2d": {"out": 2, "kernel": 2, "bias": false, "name": "conv"}}, "flatten",
                                    {"linear": {"out": 2, "name": "fc"}}])";
const Shape kInput{1, 3, 3, 2};

std::string flipped(std::string bytes, std::size_t bit) {
  bytes[bit / 8] = static_cast<char>(bytes[bit / 8] ^ (1 << bit % 8));
  return bytes;
}

class DamagedWeights : public ::testing::Test {
 protected:
  DamagedWeights() : config_(testing::layers_config(kLayers)), path_(folder_.path() / "w.safetensors") {
    config_.weights = path_.string();
    file_.metadata["tessera.layout"] = std::string("OHWI");
    file_.tensors = {{"conv.weight", counting({2, 2, 2, 2})}, {"fc.weight", counting({2, 8})}, {"fc.bias", counting({2})}};
    with_checksum_ = file_;
    add_checksum(with_checksum_);
  }

  std::map<std::string, Tensor> load(const std::string& bytes) const {
    std::error_code ignored;
    std::filesystem::remove(path_, ignored);
    real_vfs().create(path_)->write(bytes);
    return model_state(*initial_model(real_vfs(), config_, kInput, 1).model).tensors;
  }
  // Loads these bytes as a file and returns the error, which must name the file, or "" if the file loads.
  std::string error_of(const std::string& bytes) const {
    try {
      load(bytes);
    } catch (const Error& error) {
      std::string message = error.what();
      EXPECT_TRUE(dynamic_cast<const IoError*>(&error) || dynamic_cast<const ConfigError*>(&error)) << message;
      EXPECT_NE(message.find(path_.string()), std::string::npos) << message;
      return message;
    }
    return {};
  }
  static std::size_t data_begin(const std::string& bytes) {
    std::uint64_t length = 0;
    std::memcpy(&length, bytes.data(), sizeof length);
    return 8 + length;
  }

  TemporaryFolder folder_;
  ModelConfig config_;
  std::filesystem::path path_;
  SafetensorsFile file_;
  SafetensorsFile with_checksum_;
};

TEST_F(DamagedWeights, EveryBitOfAFileWithAChecksumCounts) {
  const std::string bytes = encode_safetensors(with_checksum_);
  ASSERT_EQ(error_of(bytes), "");
  const std::size_t key = bytes.find(kChecksumKey);
  ASSERT_NE(key, std::string::npos);
  for (std::size_t bit = 0; bit < 8 * bytes.size(); ++bit) {
    // A change of the checksum's key leaves a valid file without a checksum.
    const bool in_key = bit / 8 >= key && bit / 8 < key + kChecksumKey.size();
    if (in_key) continue;
    ASSERT_NE(error_of(flipped(bytes, bit)), "") << "bit " << bit;
  }
}

TEST_F(DamagedWeights, EveryTruncationAndEveryExtensionIsFound) {
  for (const SafetensorsFile& file : {file_, with_checksum_}) {
    const std::string bytes = encode_safetensors(file);
    for (std::size_t length = 0; length < bytes.size(); ++length) ASSERT_NE(error_of(bytes.substr(0, length)), "") << length;
    EXPECT_NE(error_of(bytes + '\0').find("trailing bytes"), std::string::npos);
    EXPECT_NE(error_of(bytes + bytes), "");
  }
}

// PyTorch's files have no checksum. A flipped bit of the header is found unless it only changes metadata that nobody reads.
TEST_F(DamagedWeights, HeadersWithoutAChecksumAreReadStrictly) {
  file_.metadata.clear();
  const std::string bytes = encode_safetensors(file_);
  const std::size_t metadata = bytes.find("\"__metadata__\"");
  const std::size_t names = bytes.find("}", metadata);
  for (std::size_t bit = 0; bit < 8 * data_begin(bytes); ++bit) {
    const bool in_metadata = bit / 8 > metadata + 15 && bit / 8 < names;
    if (in_metadata) continue;
    ASSERT_NE(error_of(flipped(bytes, bit)), "") << "bit " << bit << " in " << bytes.substr(8, names);
  }
}

TEST_F(DamagedWeights, AThousandBitsOfTheDataAreFoundByTheChecksum) {
  const std::string bytes = encode_safetensors(with_checksum_);
  const std::size_t begin = data_begin(bytes);
  std::mt19937 random(9);
  for (int i = 0; i < 1000; ++i) {
    const std::string message = error_of(flipped(bytes, 8 * begin + random() % (8 * (bytes.size() - begin))));
    ASSERT_NE(message.find(": checksum is "), std::string::npos) << message;
  }
}

TEST_F(DamagedWeights, ExchangedPartsAreFound) {
  const std::string bytes = encode_safetensors(with_checksum_);
  SafetensorsFile other = with_checksum_;
  other.tensors["fc.bias"] = Tensor::zeros({2});
  add_checksum(other);
  const std::string other_bytes = encode_safetensors(other);
  ASSERT_EQ(error_of(other_bytes), "");
  const std::size_t begin = data_begin(bytes);
  ASSERT_EQ(begin, data_begin(other_bytes));
  EXPECT_NE(error_of(bytes.substr(0, begin) + other_bytes.substr(begin)).find("checksum is"), std::string::npos);
  std::string swapped = bytes;  // with the first and the last 8 bytes of the data exchanged
  std::swap_ranges(swapped.begin() + static_cast<std::ptrdiff_t>(begin), swapped.begin() + static_cast<std::ptrdiff_t>(begin) + 8,
                   swapped.end() - 8);
  EXPECT_NE(error_of(swapped).find("checksum is"), std::string::npos);
  std::string zeroed = bytes;
  zeroed.replace(zeroed.size() - 16, 16, 16, '\0');
  EXPECT_NE(error_of(zeroed).find("checksum is"), std::string::npos);
  SafetensorsFile renamed = with_checksum_;
  renamed.tensors["conv.weight"] = counting({2, 2, 2, 2});
  std::swap(renamed.tensors["fc.weight"], renamed.tensors["conv.weight"]);
  EXPECT_NE(error_of(encode_safetensors(renamed)).find("checksum is"), std::string::npos);
}

TEST_F(DamagedWeights, FilesThatAreSomethingElse) {
  const std::string zeros(100, '\0');
  const std::string ones(100, '\xff');
  for (const std::string& bytes : {std::string(), zeros, ones, std::string("\x89PNG\r\n\x1a\n"),
                                   std::string("version: 1\nname: x\n"), std::string(R"({"a": 1})")}) {
    EXPECT_NE(error_of(bytes).find("safetensors: "), std::string::npos) << error_of(bytes);
  }
}

TEST_F(DamagedWeights, NumbersThatAreNoneAreRefusedUnlessAskedFor) {
  for (const double bad : {std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity(),
                           -std::numeric_limits<double>::infinity()}) {
    file_.tensors["fc.bias"] = Tensor::full({2}, bad);
    config_.allow_nonfinite = false;
    EXPECT_NE(error_of(encode_safetensors(file_)).find("not finite: fc.bias [2] has 2 NaN or Inf of 2"), std::string::npos);
    config_.allow_nonfinite = true;
    EXPECT_EQ(error_of(encode_safetensors(file_)), "");
  }
}

// A checkpoint's files hold no checksum. Its manifest has their hashes.
TEST_F(DamagedWeights, AFileInsideACheckpointIsCheckedAgainstItsManifest) {
  const std::string bytes = encode_safetensors(file_);
  const std::filesystem::path checkpoint = folder_.path() / "step-00000001";
  real_vfs().make_directory(checkpoint);
  path_ = checkpoint / "w.safetensors";
  config_.weights = path_.string();
  Manifest manifest;
  manifest.step = 1;
  manifest.files = {{"w.safetensors", static_cast<std::int64_t>(bytes.size()), xxh3_128(bytes)}};
  const std::string sealed = encode_manifest(manifest);
  write_file_atomically(real_vfs(), checkpoint / kManifestName, sealed);
  EXPECT_EQ(error_of(bytes), "");
  for (std::size_t bit = 0; bit < 8 * bytes.size(); ++bit) {
    ASSERT_NE(error_of(flipped(bytes, bit)).find(", manifest says "), std::string::npos) << "bit " << bit;
  }
  write_file_atomically(real_vfs(), checkpoint / kManifestName, flipped(sealed, 100));
  try {
    load(bytes);
    FAIL() << "taken";
  } catch (const IoError& error) {
    EXPECT_NE(std::string(error.what()).find("MANIFEST.json: hash is "), std::string::npos) << error.what();
  }
}

// The name does not make it a manifest: outside a checkpoint the file may belong to another program.
TEST_F(DamagedWeights, AManifestOutsideACheckpointIsNotAsked) {
  write_file_atomically(real_vfs(), folder_.path() / kManifestName, "{\"foo\": 1}");
  EXPECT_EQ(error_of(encode_safetensors(file_)), "");
}

}  // namespace
}  // namespace tessera
