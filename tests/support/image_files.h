// JPEG and PNG files of every kind, made for tests.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace tessera::testing {

using Bytes = std::vector<std::uint8_t>;

// `samples` are [height, width, channels] as the file stores them: 1 channel for grey, 3 for rgb, 4 for cmyk and ycck.
enum class JpegKind { grey, rgb, cmyk, ycck };
struct JpegOptions {
  JpegKind kind = JpegKind::rgb;  // rgb is stored as YCbCr
  int quality = 100;
  bool progressive = false;
  bool subsampled = false;  // 4:2:0
  std::string tiff = {};  // EXIF block
};
std::string encode_jpeg(unsigned height, unsigned width, const Bytes& samples, const JpegOptions& options = {});

// `rows` are the packed bytes of all rows.
enum class PngKind { grey, grey_alpha, rgb, rgba, palette };
struct PngOptions {
  PngKind kind = PngKind::rgb;
  int bits = 8;
  bool interlaced = false;
  Bytes palette = {};  // RGB triples
  Bytes transparency = {};  // of the palette's first entries
  std::string tiff = {};  // EXIF block
};
std::string encode_png(unsigned height, unsigned width, const Bytes& rows, const PngOptions& options = {});

// A TIFF header whose first directory has some other tag and the orientation.
std::string orientation_tiff(int orientation, bool big_endian = false);

// The image [height, width, 3] of tests/oracle/resample.py.
Bytes pattern(std::int64_t height, std::int64_t width);

}  // namespace tessera::testing
