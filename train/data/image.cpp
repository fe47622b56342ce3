#include "train/data/image.h"

#include <algorithm>
#include <fstream>
#include <string>

#include "core/support/error.h"
#include "train/data/image_codecs.h"

namespace tessera {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kPngSignature("\x89PNG\r\n\x1a\n", 8);
constexpr std::string_view kJpegStart("\xff\xd8\xff", 3);
constexpr std::uintmax_t kMaxFileBytes = std::uintmax_t{1} << 30;

// Reads unsigned integers of a TIFF block in the block's byte order.
class TiffReader {
 public:
  explicit TiffReader(std::string_view bytes) : bytes_(bytes), big_(bytes.starts_with("MM")) {}

  bool known() const { return bytes_.starts_with("II*") || bytes_.starts_with(std::string_view("MM\0*", 4)); }
  bool holds(std::uint64_t offset, std::uint64_t count) const { return offset + count <= bytes_.size(); }
  std::uint32_t read(std::uint64_t offset, int bytes) const {
    std::uint32_t value = 0;
    for (int i = 0; i < bytes; ++i) {
      const int shift = 8 * (big_ ? bytes - 1 - i : i);
      value |= std::uint32_t{static_cast<unsigned char>(bytes_[offset + static_cast<std::uint64_t>(i)])} << shift;
    }
    return value;
  }

 private:
  std::string_view bytes_;
  bool big_;
};

// Index, in an h x w image stored with this orientation, of the pixel at (y, x) of the upright image.
std::int64_t source_of(int orientation, std::int64_t y, std::int64_t x, std::int64_t h, std::int64_t w) {
  switch (orientation) {
    case 2: return y * w + (w - 1 - x);
    case 3: return (h - 1 - y) * w + (w - 1 - x);
    case 4: return (h - 1 - y) * w + x;
    case 5: return x * w + y;
    case 6: return (h - 1 - x) * w + y;
    case 7: return (h - 1 - x) * w + (w - 1 - y);
    case 8: return x * w + (w - 1 - y);
    default: return y * w + x;
  }
}

std::string read_bytes(const fs::path& path) {
  std::error_code error;
  const bool regular = fs::is_regular_file(path, error);
  TESSERA_CHECK(!error || error == std::errc::no_such_file_or_directory, IoError, "cannot open: ", error.message());
  TESSERA_CHECK(fs::exists(path), IoError, "no such file");
  TESSERA_CHECK(regular, IoError, "is no regular file");
  const std::uintmax_t size = fs::file_size(path, error);
  TESSERA_CHECK(!error, IoError, "cannot open: ", error.message());
  TESSERA_CHECK(size <= kMaxFileBytes, IoError, "has ", size, " bytes; at most ", kMaxFileBytes, " are read");
  std::string bytes(size, '\0');
  std::ifstream in(path, std::ios::binary);
  in.read(bytes.data(), static_cast<std::streamsize>(size));
  TESSERA_CHECK(static_cast<std::uintmax_t>(in.gcount()) == size, IoError, "cannot read: expected ", size, " bytes, found ",
                in.gcount());
  return bytes;
}

}  // namespace

ImageFormat image_format(std::string_view bytes) {
  if (bytes.starts_with(kJpegStart)) return ImageFormat::jpeg;
  return bytes.starts_with(kPngSignature) ? ImageFormat::png : ImageFormat::unknown;
}

void check_image_size(std::string_view format, std::int64_t height, std::int64_t width, std::int64_t max_pixels) {
  TESSERA_CHECK(height > 0 && width > 0, IoError, format, " of ", height, 'x', width, " pixels");
  TESSERA_CHECK(height <= max_pixels / width, IoError, format, " of ", height, 'x', width, " pixels; at most ", max_pixels,
                " are read");
}

Image decode_image(std::string_view bytes, std::int64_t max_pixels) {
  TESSERA_CHECK(!bytes.empty(), IoError, "the file is empty");
  const ImageFormat format = image_format(bytes);
  TESSERA_CHECK(format != ImageFormat::unknown, IoError, "not a JPEG or PNG file");
  DecodedImage decoded = format == ImageFormat::jpeg ? decode_jpeg(bytes, max_pixels) : decode_png(bytes, max_pixels);
  return upright(std::move(decoded.image), decoded.orientation);
}

Image read_image(const fs::path& path) {
  try {
    return decode_image(read_bytes(path));
  } catch (const IoError& error) {
    throw IoError(str(path.string(), ": ", error.what()));
  } catch (const fs::filesystem_error& error) {
    throw IoError(str(path.string(), ": cannot open: ", error.code().message()));
  }
}

// TIFF 6.0: byte order, 42, offset of the first directory, which is a count and then 12-byte entries: tag, type, count, value.
int exif_orientation(std::string_view tiff) {
  constexpr std::uint32_t kOrientation = 0x0112;
  constexpr std::uint32_t kShort = 3;
  const TiffReader reader(tiff);
  if (!reader.known() || !reader.holds(0, 8)) return 1;
  const std::uint64_t directory = reader.read(4, 4);
  if (!reader.holds(directory, 2)) return 1;
  const std::uint32_t entries = reader.read(directory, 2);
  for (std::uint32_t i = 0; i < entries; ++i) {
    const std::uint64_t entry = directory + 2 + std::uint64_t{12} * i;
    if (!reader.holds(entry, 12)) return 1;
    if (reader.read(entry, 2) != kOrientation || reader.read(entry + 2, 2) != kShort) continue;
    const std::uint32_t value = reader.read(entry + 8, 2);
    return value >= 1 && value <= 8 ? static_cast<int>(value) : 1;
  }
  return 1;
}

Image upright(Image image, int orientation) {
  if (orientation <= 1) return image;
  const bool turned = orientation >= 5;
  Image result{turned ? image.width : image.height, turned ? image.height : image.width, {}};
  result.pixels.resize(image.pixels.size());
  std::uint8_t* out = result.pixels.data();
  for (std::int64_t y = 0; y < result.height; ++y) {
    for (std::int64_t x = 0; x < result.width; ++x, out += 3) {
      std::copy_n(image.pixels.data() + 3 * source_of(orientation, y, x, image.height, image.width), 3, out);
    }
  }
  return result;
}

}  // namespace tessera
