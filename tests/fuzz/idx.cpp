#include "train/data/idx.h"

#include <zlib.h>

#include <fstream>
#include <iterator>

#include "core/support/error.h"
#include "tests/core/io/temporary_folder.h"
#include "tests/fuzz/memory_file.h"
#include "tests/fuzz/targets.h"

namespace tessera::fuzz {
namespace {

constexpr const char* kImages = "train-images-idx3-ubyte";
constexpr const char* kLabels = "train-labels-idx1-ubyte";

std::string file_of(const std::vector<std::int64_t>& sizes, const std::string& data) {
  std::string bytes{'\0', '\0', '\x08', static_cast<char>(sizes.size())};
  for (const std::int64_t size : sizes) {
    for (int shift = 24; shift >= 0; shift -= 8) bytes += static_cast<char>(size >> shift & 255);
  }
  return bytes + data;
}

std::string compressed(const std::string& bytes) {
  MemoryFile file;
  const gzFile out = gzopen(file.path().c_str(), "wb");
  gzwrite(out, bytes.data(), static_cast<unsigned>(bytes.size()));
  gzclose(out);
  std::ifstream in(file.path(), std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

void write(const std::filesystem::path& path, std::string_view bytes) {
  std::ofstream(path, std::ios::binary).write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
}

// Loads the bytes as one half of a data set (images or labels), with a matching other half.
void load_pair(std::string_view bytes, const Tensor& read) {
  static const TemporaryFolder folder;
  const std::int64_t count = read.dim(0);
  const bool images = read.rank() == 3;
  const bool pixels = !images || (read.dim(1) > 0 && read.dim(2) > 0);  // else the header may claim any number
  const std::int64_t partners = pixels ? count : 1;
  const std::string data(static_cast<std::size_t>(partners), '\0');
  write(folder.path() / (images ? kImages : kLabels), bytes);
  write(folder.path() / (images ? kLabels : kImages), images ? file_of({partners}, data) : file_of({partners, 1, 1}, data));
  try {
    const MemoryDataset dataset = load_idx(folder.path(), "mnist", "train");
    require(pixels && dataset.size() == count && dataset.images.numel() == (images ? read.numel() : count),
            "another size than the file's");
    check_dataset(dataset);
  } catch (const IoError&) {
    require(!images || !pixels, "good images with good labels are refused");  // a label may be out of range
  }
}

}  // namespace

void idx(std::string_view bytes) {
  static MemoryFile file;
  file.write(bytes);
  Tensor read;
  try {
    read = read_idx(file.path());
  } catch (const IoError&) {
    return;
  }
  if (read.rank() == 1 || read.rank() == 3) load_pair(bytes, read);
}

std::vector<std::string> idx_seeds() {
  const std::string images = file_of({3, 2, 3}, std::string(18, 'x'));
  const std::string labels = file_of({3}, {'\x07', '\0', '\x09'});
  return {images, labels, compressed(images), compressed(labels), file_of({2, 1, 1, 3}, "abcdef"), file_of({0, 28, 28}, "")};
}

}  // namespace tessera::fuzz
