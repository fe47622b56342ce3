#include "train/data/cifar.h"

#include "core/support/error.h"
#include "tests/fuzz/memory_file.h"
#include "tests/fuzz/targets.h"

namespace tessera::fuzz {
namespace {

constexpr std::size_t kPixels = 32 * 32;

void check_pixels(std::string_view bytes, const MemoryDataset& dataset, std::size_t label_bytes) {
  const std::size_t record = label_bytes + 3 * kPixels;
  const std::uint8_t* pixels = dataset.images.data<std::uint8_t>();
  for (std::size_t at = 0; at < bytes.size(); ++at) {
    const std::size_t in_record = at % record;
    if (in_record < label_bytes) continue;
    const std::size_t plane = (in_record - label_bytes) / kPixels;
    const std::size_t pixel = at / record * kPixels + (in_record - label_bytes) % kPixels;
    require(pixels[pixel * 3 + plane] == static_cast<std::uint8_t>(bytes[at]), "a pixel came out as another");
  }
}

void read_as(std::string_view bytes, CifarLayout layout, const char* name) {
  static MemoryFile file;
  file.write(bytes);
  const auto label_bytes = static_cast<std::size_t>(layout.label_bytes);
  layout.files = {file.path()};
  layout.records_per_file = static_cast<std::int64_t>(bytes.size() / (label_bytes + 3 * kPixels));
  MemoryDataset dataset;
  try {
    dataset = load_cifar("/", name, layout);
  } catch (const IoError&) {
    return;
  }
  require(bytes.size() % (label_bytes + 3 * kPixels) == 0, "a file that ends inside a record was accepted");
  check_dataset(dataset);
  check_pixels(bytes, dataset, label_bytes);
}

}  // namespace

void cifar(std::string_view bytes) {
  read_as(bytes, cifar10_layout("test"), "cifar10");
  read_as(bytes, cifar100_layout("test"), "cifar100");
}

std::vector<std::string> cifar_seeds() {
  const std::string ten = "\x03" + std::string(3 * kPixels, 'p');
  const std::string hundred = "\x13\x63" + std::string(3 * kPixels, 'q');
  return {ten, hundred, ten + ten, hundred + hundred};
}

}  // namespace tessera::fuzz
