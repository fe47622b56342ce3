// JPEG and PNG files as 8-bit RGB, upright, the way PIL's `exif_transpose(image).convert("RGB")` gives them:
//   grey          three equal channels
//   alpha         dropped; the colours under it stay (no compositing)
//   palette       its colours; transparency is dropped
//   16 bits       scaled to 8 and rounded (PIL clips 16-bit grey instead)
//   CMYK, YCCK    taken as Adobe writes them, inverted; no colour profile is applied
//   orientation   all eight of EXIF, in JPEG and PNG; an illegal value counts as upright
// The bytes decide what a file is, not its name. Gamma and ICC profiles are not applied.
// Damage: a PNG is refused when any of its chunks has a wrong checksum. A JPEG is refused when libjpeg could only go on by
// making up pixels, or when its header is too small for its data. JPEG has no checksum: other changed bits give other pixels.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string_view>
#include <vector>

namespace tessera {

struct Image {
  std::int64_t height = 0;
  std::int64_t width = 0;
  std::vector<std::uint8_t> pixels;  // [height, width, 3]
};

// Larger images are refused before anything is allocated; the limit is PIL's, 2 x 89 million.
inline constexpr std::int64_t kMaxImagePixels = 178'956'970;

enum class ImageFormat { jpeg, png, unknown };
// The format, by the first bytes.
ImageFormat image_format(std::string_view bytes);

// Throws IoError with the reason alone: "not a JPEG or PNG file", "broken JPEG: Premature end of JPEG file", "PNG of 70000x70000
// pixels; at most 178956970 are read". A caller with less memory lowers `max_pixels`.
Image decode_image(std::string_view bytes, std::int64_t max_pixels = kMaxImagePixels);

// Throws IoError "path: reason", also when the path is no regular file or is larger than 1 GiB.
Image read_image(const std::filesystem::path& path);

// The value of the orientation tag, 1..8, in a TIFF header with its first directory; 1 when it is absent or damaged.
int exif_orientation(std::string_view tiff);

// The image as its orientation tag says to show it.
Image upright(Image image, int orientation);

}  // namespace tessera
