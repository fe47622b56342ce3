#include "train/data/idx.h"

#include <algorithm>
#include <array>
#include <memory>

#include <zlib.h>

#include "core/support/error.h"

namespace tessera {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kMaxBytes = std::int64_t{1} << 34;  // a header that asks for more is damaged
constexpr std::int64_t kMostUnpacked = 1032;  // bytes that one byte of a deflate stream can become (zlib, "Technical Details")

// Reads plain and gzip files alike, because zlib passes content without a gzip header through unchanged.
class IdxFile {
 public:
  explicit IdxFile(const fs::path& path) : path_(path.string()), file_(gzopen(path_.c_str(), "rb"), &gzclose) {
    TESSERA_CHECK(file_ != nullptr, IoError, path_, ": cannot open");
    gzbuffer(file_.get(), 1u << 17);
  }

  // Reads up to `bytes` bytes; fewer only at the end of the file.
  std::int64_t read(void* target, std::int64_t bytes) {
    std::int64_t done = 0;
    while (done < bytes) {
      const auto piece = static_cast<unsigned>(std::min<std::int64_t>(bytes - done, 1 << 24));
      const int count = gzread(file_.get(), static_cast<char*>(target) + done, piece);
      check_stream();
      if (count <= 0) break;
      done += count;
    }
    return done;
  }

  std::int64_t count_rest() {
    std::array<char, 4096> scratch;
    std::int64_t rest = 0;
    for (std::int64_t got = 0; (got = read(scratch.data(), scratch.size())) > 0;) rest += got;
    return rest;
  }

  // Call after the last byte. If a gzip stream has no end, it also has no checksum, so what was read is not verified.
  void check_end() {
    int code = Z_OK;
    gzerror(file_.get(), &code);
    TESSERA_CHECK(code != Z_BUF_ERROR, IoError, path_, ": truncated: the compressed data ends early");
  }

  const std::string& path() const { return path_; }

 private:
  // Z_BUF_ERROR means that a gzip stream stops early. It is allowed here, because the size check gives a better message.
  void check_stream() {
    int code = Z_OK;
    const char* message = gzerror(file_.get(), &code);
    TESSERA_CHECK(code == Z_OK || code == Z_STREAM_END || code == Z_BUF_ERROR, IoError, path_, ": cannot decompress: ", message);
  }

  std::string path_;
  std::unique_ptr<gzFile_s, int (*)(gzFile)> file_;
};

std::uint32_t big_endian(const unsigned char* bytes) {
  return (std::uint32_t{bytes[0]} << 24) | (std::uint32_t{bytes[1]} << 16) | (std::uint32_t{bytes[2]} << 8) | bytes[3];
}

Shape read_header(IdxFile& file) {
  std::array<unsigned char, 4> magic{};
  std::int64_t got = file.read(magic.data(), 4);
  TESSERA_CHECK(got == 4, IoError, file.path(), ": truncated IDX header: expected 4 bytes, found ", got);
  TESSERA_CHECK(magic[0] == 0 && magic[1] == 0 && magic[2] == 0x08 && magic[3] >= 1 && magic[3] <= 4, IoError, file.path(),
                ": not an IDX file of unsigned bytes: magic number is ", big_endian(magic.data()), ", expected 2049..2052");
  std::array<unsigned char, 16> sizes{};
  const std::int64_t expected = 4 * std::int64_t{magic[3]};
  got = file.read(sizes.data(), expected);
  TESSERA_CHECK(got == expected, IoError, file.path(), ": truncated IDX header: expected ", 4 + expected, " bytes, found ",
                4 + got);
  Shape shape;
  std::int64_t total = 1;  // a size of zero counts as one, so that it cannot hide an overflow of the other sizes
  for (int i = 0; i < magic[3]; ++i) {
    const auto size = static_cast<std::int64_t>(big_endian(sizes.data() + 4 * i));
    shape = shape.append(size);
    TESSERA_CHECK(total <= kMaxBytes / std::max<std::int64_t>(size, 1), IoError, file.path(), ": IDX header asks for ", shape,
                  " bytes; the limit is ", kMaxBytes);
    total *= std::max<std::int64_t>(size, 1);
  }
  return shape;
}

fs::path find_file(const fs::path& root, const std::string& stem, const std::string& kind) {
  std::string tried;
  for (const char* separator : {"-", "."}) {
    for (const char* ending : {"", ".gz"}) {
      const std::string name = str(stem, separator, kind, "-ubyte", ending);
      if (fs::exists(root / name)) return root / name;
      tried += (tried.empty() ? "" : ", ") + name;
    }
  }
  throw IoError(str(root.string(), ": no such data file; looked for ", tried));
}

std::vector<std::string> class_names(std::string_view name) {
  if (name == "fashion-mnist") {
    return {"T-shirt/top", "Trouser", "Pullover", "Dress", "Coat", "Sandal", "Shirt", "Sneaker", "Bag", "Ankle boot"};
  }
  TESSERA_CHECK(name == "mnist", InternalError, "load_idx: name is '", name, "'; known: mnist, fashion-mnist");
  return {"0", "1", "2", "3", "4", "5", "6", "7", "8", "9"};
}

// Throws before any memory is allocated for a damaged header.
void check_file_can_hold(const fs::path& path, const Shape& shape) {
  std::error_code error;
  const auto size = static_cast<std::int64_t>(fs::file_size(path, error));
  TESSERA_CHECK(error || shape.numel() / kMostUnpacked <= size, IoError, path.string(), ": truncated: the header says ", shape,
                ", expected ", shape.numel(), " bytes of data, the whole file has ", size, ", compressed or not");
}

}  // namespace

Tensor read_idx(const fs::path& path) {
  IdxFile file(path);
  const Shape shape = read_header(file);
  check_file_can_hold(path, shape);
  const Tensor tensor = Tensor::empty(shape, DType::u8);
  const std::int64_t found = file.read(tensor.raw(), shape.numel());
  TESSERA_CHECK(found == shape.numel(), IoError, path.string(), ": truncated: the header says ", shape, ", expected ",
                shape.numel(), " bytes of data, found ", found);
  const std::int64_t rest = file.count_rest();
  TESSERA_CHECK(rest == 0, IoError, path.string(), ": too long: the header says ", shape, ", expected ", shape.numel(),
                " bytes of data, found ", found + rest);
  file.check_end();
  return tensor;
}

MemoryDataset load_idx(const fs::path& root, std::string_view name, std::string_view split) {
  MemoryDataset dataset;
  dataset.name = name;
  dataset.classes = class_names(name);
  const std::string stem = split == "test" ? "t10k" : "train";
  const fs::path images_path = find_file(root, stem + "-images", "idx3");
  const fs::path labels_path = find_file(root, stem + "-labels", "idx1");
  const Tensor images = read_idx(images_path);
  const Tensor labels = read_idx(labels_path);
  TESSERA_CHECK(images.rank() == 3, IoError, images_path.string(), ": images are ", images.shape(), "; needs [n, h, w]");
  TESSERA_CHECK(images.dim(1) > 0 && images.dim(2) > 0, IoError, images_path.string(), ": images are ", images.shape(),
                "; expected at least 1 pixel each, found 0");
  TESSERA_CHECK(labels.rank() == 1, IoError, labels_path.string(), ": labels are ", labels.shape(), "; needs [n]");
  TESSERA_CHECK(images.dim(0) == labels.dim(0), IoError, labels_path.string(), ": expected ", images.dim(0),
                " labels, one for each image of ", images_path.string(), ", found ", labels.dim(0));
  const std::uint8_t* bytes = labels.data<std::uint8_t>();
  for (std::int64_t i = 0; i < labels.dim(0); ++i) {
    TESSERA_CHECK(bytes[i] < dataset.classes.size(), IoError, labels_path.string(), ": label of record ", i, " is ",
                  int{bytes[i]}, "; must be in 0..", dataset.classes.size() - 1);
  }
  dataset.images = images.reshape(images.shape().append(1));
  dataset.labels = labels.to(DType::i64);
  return dataset;
}

ImageSplits IdxConfig::read_images(const std::string& root, std::uint64_t seed, std::vector<BadFile>*) const {
  return split_in_memory(load_idx(root, name, "train"), load_idx(root, name, "test"), val, seed);
}

}  // namespace tessera
