#include "train/data/image.h"

#include <zlib.h>

#include <algorithm>

#include "core/support/error.h"
#include "tests/fuzz/targets.h"
#include "tests/support/image_files.h"
#include "train/data/resample.h"

namespace tessera::fuzz {
namespace {

// A few bytes may ask for hundreds of megabytes of one colour. That is legal but slow, and there is nothing to find.
constexpr std::int64_t kMaxPixels = 1 << 16;
constexpr std::int64_t kResize = 11;
constexpr std::int64_t kCrop = 7;

void cut(const Image& decoded, const Framing& framing) {
  const Frame frame = choose_frame(framing, decoded.height, decoded.width, kResize, kCrop);
  const Box& source = frame.source;
  require(source.top >= 0 && source.left >= 0 && source.height > 0 && source.width > 0 &&
              source.top + source.height <= decoded.height && source.left + source.width <= decoded.width,
          "a part outside the image");
  std::vector<std::uint8_t> sample(static_cast<std::size_t>(kCrop * kCrop * 3));
  resample(decoded, frame, kCrop, sample);
}

// Gives each PNG chunk in the bytes its right checksum: otherwise hardly a changed byte would get past the check.
std::string with_right_checksums(std::string_view bytes) {
  std::string png(bytes);
  for (std::size_t at = 8; at + 12 <= png.size();) {
    std::size_t size = 0;
    for (std::size_t i = 0; i < 4; ++i) size = size << 8 | static_cast<unsigned char>(png[at + i]);
    size = std::min(size, png.size() - at - 12);
    const auto sum = crc32(0, reinterpret_cast<const Bytef*>(png.data() + at + 4), static_cast<uInt>(size + 4));
    for (std::size_t i = 0; i < 4; ++i) png[at + 8 + size + i] = static_cast<char>(sum >> (24 - 8 * i));
    at += size + 12;
  }
  return png;
}

void check(std::string_view bytes) {
  Image decoded;
  try {
    decoded = decode_image(bytes, kMaxPixels);
  } catch (const IoError&) {
    return;
  }
  require(decoded.height > 0 && decoded.width > 0 && decoded.height <= kMaxPixels / decoded.width, "an image of a wrong size");
  require(static_cast<std::int64_t>(decoded.pixels.size()) == decoded.height * decoded.width * 3, "pixels of another size");
  const RngStream stream(1, "fuzz", "framing");
  for (const Framing::Kind kind : {Framing::Kind::centre, Framing::Kind::random, Framing::Kind::resized}) {
    cut(decoded, {.kind = kind, .min_area = 0.08, .stream = stream, .epoch = 1, .sample = bytes.size()});
  }
}

}  // namespace

void image(std::string_view bytes) {
  check(bytes);
  if (image_format(bytes) == ImageFormat::png) check(with_right_checksums(bytes));
}

std::vector<std::string> image_seeds() {
  using namespace testing;
  const Bytes pixels = pattern(9, 13);
  const Bytes inks(static_cast<std::size_t>(9 * 13 * 4), 90);
  const std::string tiff = orientation_tiff(6);
  return {
      encode_png(9, 13, pixels, {.tiff = tiff}),
      encode_png(9, 13, pixels, {.interlaced = true}),
      encode_png(1, 1, {1, 1, 2, 2, 3, 3, 0, 0}, {.kind = PngKind::rgba, .bits = 16}),
      encode_png(2, 3, {0b01000000, 0b10100000}, {.kind = PngKind::grey, .bits = 1}),
      encode_png(2, 2, {2, 0, 1, 0},
                 {.kind = PngKind::palette, .palette = {1, 2, 3, 4, 5, 6, 7, 8, 9}, .transparency = {0, 0, 128}}),
      encode_jpeg(9, 13, pixels, {.quality = 70, .subsampled = true, .tiff = tiff}),
      encode_jpeg(9, 13, pixels, {.quality = 70, .progressive = true}),
      encode_jpeg(9, 13, Bytes(9 * 13, 90), {.kind = JpegKind::grey}),
      encode_jpeg(9, 13, inks, {.kind = JpegKind::cmyk}),
      encode_jpeg(9, 13, inks, {.kind = JpegKind::ycck, .progressive = true}),
  };
}

}  // namespace tessera::fuzz
