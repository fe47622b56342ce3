#include "train/data/cifar.h"

#include <fstream>

#include "core/support/error.h"

namespace tessera {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kSide = 32;
constexpr std::int64_t kPlane = kSide * kSide;
constexpr std::int64_t kChannels = 3;

std::vector<char> read_exactly(const fs::path& path, std::int64_t expected) {
  std::error_code error;
  const auto found = static_cast<std::int64_t>(fs::file_size(path, error));
  TESSERA_CHECK(!error, IoError, path.string(), ": cannot open: ", error.message());
  TESSERA_CHECK(found == expected, IoError, path.string(), ": wrong size: expected ", expected, " bytes, found ", found);
  std::vector<char> bytes(static_cast<std::size_t>(expected));
  std::ifstream in(path, std::ios::binary);
  in.read(bytes.data(), static_cast<std::streamsize>(expected));
  TESSERA_CHECK(in.gcount() == expected, IoError, path.string(), ": cannot read: expected ", expected, " bytes, found ",
                in.gcount());
  return bytes;
}

void planes_to_pixels(const char* planes, std::uint8_t* pixels) {
  for (std::int64_t channel = 0; channel < kChannels; ++channel) {
    for (std::int64_t i = 0; i < kPlane; ++i) {
      pixels[i * kChannels + channel] = static_cast<std::uint8_t>(planes[channel * kPlane + i]);
    }
  }
}

void load_file(const fs::path& path, const CifarLayout& layout, std::uint8_t* pixels, std::int64_t* labels) {
  const std::int64_t record_bytes = layout.label_bytes + kChannels * kPlane;
  const std::vector<char> bytes = read_exactly(path, layout.records_per_file * record_bytes);
  for (std::int64_t i = 0; i < layout.records_per_file; ++i) {
    const char* record = bytes.data() + i * record_bytes;
    const auto label = static_cast<unsigned char>(record[layout.label_bytes - 1]);
    TESSERA_CHECK(label < layout.classes.size(), IoError, path.string(), ": label of record ", i, " is ", int{label},
                  "; must be in 0..", layout.classes.size() - 1);
    labels[i] = label;
    planes_to_pixels(record + layout.label_bytes, pixels + i * kChannels * kPlane);
  }
}

}  // namespace

CifarLayout cifar10_layout(std::string_view split) {
  CifarLayout layout;
  layout.classes = {"airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck"};
  if (split == "test") {
    layout.files = {"test_batch.bin"};
  } else {
    layout.files = {"data_batch_1.bin", "data_batch_2.bin", "data_batch_3.bin", "data_batch_4.bin", "data_batch_5.bin"};
  }
  return layout;
}

CifarLayout cifar100_layout(std::string_view split) {
  CifarLayout layout;
  layout.files = {split == "test" ? "test.bin" : "train.bin"};
  layout.records_per_file = split == "test" ? 10000 : 50000;
  layout.label_bytes = 2;
  layout.classes = {
      "apple",       "aquarium_fish", "baby",         "bear",         "beaver",     "bed",        "bee",       "beetle",
      "bicycle",     "bottle",        "bowl",         "boy",          "bridge",     "bus",        "butterfly", "camel",
      "can",         "castle",        "caterpillar",  "cattle",       "chair",      "chimpanzee", "clock",     "cloud",
      "cockroach",   "couch",         "crab",         "crocodile",    "cup",        "dinosaur",   "dolphin",   "elephant",
      "flatfish",    "forest",        "fox",          "girl",         "hamster",    "house",      "kangaroo",  "keyboard",
      "lamp",        "lawn_mower",    "leopard",      "lion",         "lizard",     "lobster",    "man",       "maple_tree",
      "motorcycle",  "mountain",      "mouse",        "mushroom",     "oak_tree",   "orange",     "orchid",    "otter",
      "palm_tree",   "pear",          "pickup_truck", "pine_tree",    "plain",      "plate",      "poppy",     "porcupine",
      "possum",      "rabbit",        "raccoon",      "ray",          "road",       "rocket",     "rose",      "sea",
      "seal",        "shark",         "shrew",        "skunk",        "skyscraper", "snail",      "snake",     "spider",
      "squirrel",    "streetcar",     "sunflower",    "sweet_pepper", "table",      "tank",       "telephone", "television",
      "tiger",       "tractor",       "train",        "trout",        "tulip",      "turtle",     "wardrobe",  "whale",
      "willow_tree", "wolf",          "woman",        "worm"};
  return layout;
}

MemoryDataset load_cifar(const fs::path& root, std::string_view name, const CifarLayout& layout) {
  const std::int64_t count = layout.records_per_file * static_cast<std::int64_t>(layout.files.size());
  MemoryDataset dataset;
  dataset.name = name;
  dataset.classes = layout.classes;
  dataset.images = Tensor::empty({count, kSide, kSide, kChannels}, DType::u8);
  dataset.labels = Tensor::empty({count}, DType::i64);
  std::uint8_t* pixels = dataset.images.data<std::uint8_t>();
  std::int64_t* labels = dataset.labels.data<std::int64_t>();
  for (const std::string& file : layout.files) {
    load_file(root / file, layout, pixels, labels);
    pixels += layout.records_per_file * kChannels * kPlane;
    labels += layout.records_per_file;
  }
  return dataset;
}

ImageSplits CifarConfig::read_images(const std::string& root, std::uint64_t seed, std::vector<BadFile>*) const {
  const auto layout = name == "cifar10" ? &cifar10_layout : &cifar100_layout;
  return split_in_memory(load_cifar(root, name, layout("train")), load_cifar(root, name, layout("test")), val, seed);
}

}  // namespace tessera
