#include "tests/support/image_files.h"

#include <cstdio>  // before jpeglib.h, which needs FILE

#include <jpeglib.h>
#include <png.h>

#include <cstdlib>

namespace tessera::testing {
namespace {

std::string number(std::uint32_t value, int bytes, bool big_endian) {
  std::string text;
  for (int i = 0; i < bytes; ++i) text += static_cast<char>(value >> (8 * (big_endian ? bytes - 1 - i : i)));
  return text;
}

void append(png_structp png, png_bytep data, std::size_t size) {
  static_cast<std::string*>(png_get_io_ptr(png))->append(reinterpret_cast<const char*>(data), size);
}

void nothing(png_structp) {}

void set_kind(jpeg_compress_struct& info, JpegKind kind) {
  const bool inks = kind == JpegKind::cmyk || kind == JpegKind::ycck;
  info.input_components = kind == JpegKind::grey ? 1 : inks ? 4 : 3;
  info.in_color_space = kind == JpegKind::grey ? JCS_GRAYSCALE : inks ? JCS_CMYK : JCS_RGB;
  jpeg_set_defaults(&info);
  if (kind == JpegKind::ycck) jpeg_set_colorspace(&info, JCS_YCCK);
}

int color_type(PngKind kind) {
  switch (kind) {
    case PngKind::grey: return PNG_COLOR_TYPE_GRAY;
    case PngKind::grey_alpha: return PNG_COLOR_TYPE_GRAY_ALPHA;
    case PngKind::rgb: return PNG_COLOR_TYPE_RGB;
    case PngKind::rgba: return PNG_COLOR_TYPE_RGB_ALPHA;
    case PngKind::palette: return PNG_COLOR_TYPE_PALETTE;
  }
  std::abort();
}

void set_extras(png_structp png, png_infop info, const PngOptions& options) {
  if (!options.palette.empty()) {
    png_set_PLTE(png, info, reinterpret_cast<png_const_colorp>(options.palette.data()),
                 static_cast<int>(options.palette.size() / 3));
  }
  if (!options.transparency.empty()) {
    png_set_tRNS(png, info, options.transparency.data(), static_cast<int>(options.transparency.size()), nullptr);
  }
  if (!options.tiff.empty()) {
    std::string tiff = options.tiff;
    png_set_eXIf_1(png, info, static_cast<png_uint_32>(tiff.size()), reinterpret_cast<png_bytep>(tiff.data()));
  }
}

}  // namespace

std::string encode_jpeg(unsigned height, unsigned width, const Bytes& samples, const JpegOptions& options) {
  jpeg_compress_struct info{};
  jpeg_error_mgr errors{};
  info.err = jpeg_std_error(&errors);
  jpeg_create_compress(&info);
  unsigned char* buffer = nullptr;
  unsigned long size = 0;
  jpeg_mem_dest(&info, &buffer, &size);
  info.image_height = height;
  info.image_width = width;
  set_kind(info, options.kind);
  jpeg_set_quality(&info, options.quality, TRUE);
  if (!options.subsampled) info.comp_info[0].h_samp_factor = info.comp_info[0].v_samp_factor = 1;
  if (!options.subsampled && options.kind == JpegKind::ycck) {
    info.comp_info[3].h_samp_factor = info.comp_info[3].v_samp_factor = 1;
  }
  if (options.progressive) jpeg_simple_progression(&info);
  jpeg_start_compress(&info, TRUE);
  if (!options.tiff.empty()) {
    const std::string exif = std::string("Exif\0\0", 6) + options.tiff;
    jpeg_write_marker(&info, JPEG_APP0 + 1, reinterpret_cast<const JOCTET*>(exif.data()), static_cast<unsigned>(exif.size()));
  }
  const std::size_t row_bytes = std::size_t{width} * static_cast<std::size_t>(info.input_components);
  while (info.next_scanline < height) {
    JSAMPROW row = const_cast<JSAMPROW>(samples.data()) + info.next_scanline * row_bytes;
    jpeg_write_scanlines(&info, &row, 1);
  }
  jpeg_finish_compress(&info);
  std::string bytes(reinterpret_cast<const char*>(buffer), size);
  jpeg_destroy_compress(&info);
  std::free(buffer);
  return bytes;
}

std::string encode_png(unsigned height, unsigned width, const Bytes& rows, const PngOptions& options) {
  png_structp png = png_create_write_struct(PNG_LIBPNG_VER_STRING, nullptr, nullptr, nullptr);
  png_infop info = png_create_info_struct(png);
  std::string bytes;
  png_set_write_fn(png, &bytes, append, nothing);
  png_set_IHDR(png, info, width, height, options.bits, color_type(options.kind),
               options.interlaced ? PNG_INTERLACE_ADAM7 : PNG_INTERLACE_NONE, PNG_COMPRESSION_TYPE_BASE, PNG_FILTER_TYPE_BASE);
  set_extras(png, info, options);
  png_write_info(png, info);
  std::vector<png_bytep> pointers;
  const std::size_t row_bytes = rows.size() / height;
  for (std::size_t y = 0; y < height; ++y) pointers.push_back(const_cast<png_bytep>(rows.data()) + y * row_bytes);
  png_write_image(png, pointers.data());
  png_write_end(png, info);
  png_destroy_write_struct(&png, &info);
  return bytes;
}

std::string orientation_tiff(int orientation, bool big_endian) {
  const auto n = [big_endian](std::uint32_t value, int bytes) { return number(value, bytes, big_endian); };
  std::string tiff(big_endian ? "MM" : "II");
  tiff += n(42, 2) + n(8, 4) + n(2, 2);
  tiff += n(0x010F, 2) + n(2, 2) + n(4, 4) + std::string("abc\0", 4);  // maker
  tiff += n(0x0112, 2) + n(3, 2) + n(1, 4) + n(static_cast<std::uint32_t>(orientation), 2) + n(0, 2);
  return tiff + n(0, 4);
}

Bytes pattern(std::int64_t height, std::int64_t width) {
  Bytes pixels;
  for (std::int64_t y = 0; y < height; ++y) {
    for (std::int64_t x = 0; x < width; ++x) {
      for (const std::int64_t value : {7 * y + 3 * x, y * x + 11 * y, 5 * x * x + 13 * y}) {
        pixels.push_back(static_cast<std::uint8_t>(value % 256));
      }
    }
  }
  return pixels;
}

}  // namespace tessera::testing
