#include <png.h>

#include <array>
#include <cstdio>
#include <cstring>

#include "core/support/error.h"
#include "train/data/image_codecs.h"

namespace tessera {
namespace {

// Limits for ancillary chunks such as texts and profiles, which change no pixel: bytes of one chunk after decompression, and the
// number of chunks that are kept. Further ones are skipped, so that a small file cannot fill the memory.
constexpr png_alloc_size_t kMaxChunkBytes = png_alloc_size_t{8} << 20;
constexpr png_uint_32 kMaxChunks = 8;

// Everything that a longjmp may leave half done. The caller's frame owns and destroys it.
struct Decoder {
  png_structp png = nullptr;
  png_infop info = nullptr;
  std::jmp_buf jump{};
  std::array<char, 200> message{};
  std::string_view rest;  // bytes not read yet
  png_bytep* rows = nullptr;

  Decoder() = default;
  Decoder(const Decoder&) = delete;
  Decoder& operator=(const Decoder&) = delete;
  ~Decoder() { png_destroy_read_struct(&png, &info, nullptr); }
};

[[noreturn]] void on_error(png_structp png, png_const_charp text) {
  auto& decoder = *static_cast<Decoder*>(png_get_error_ptr(png));
  std::snprintf(decoder.message.data(), decoder.message.size(), "%s", text);
  std::longjmp(decoder.jump, 1);
}

void on_warning(png_structp, png_const_charp) {}  // warnings are about chunks that change no pixel

void take_bytes(png_structp png, png_bytep out, std::size_t count) {
  auto& decoder = *static_cast<Decoder*>(png_get_io_ptr(png));
  if (count > decoder.rest.size()) png_error(png, "the file ends early");
  std::memcpy(out, decoder.rest.data(), count);
  decoder.rest.remove_prefix(count);
}

void open(Decoder& decoder) {
  decoder.png = png_create_read_struct(PNG_LIBPNG_VER_STRING, &decoder, on_error, on_warning);
  if (decoder.png != nullptr) decoder.info = png_create_info_struct(decoder.png);
  if (decoder.info == nullptr) {
    std::snprintf(decoder.message.data(), decoder.message.size(), "libpng cannot start");
    std::longjmp(decoder.jump, 1);
  }
  png_set_read_fn(decoder.png, &decoder, take_bytes);
  // By default libpng skips damaged ancillary chunks. The orientation is in such a chunk, so any damage is an error.
  png_set_crc_action(decoder.png, PNG_CRC_ERROR_QUIT, PNG_CRC_ERROR_QUIT);
  png_set_user_limits(decoder.png, PNG_UINT_31_MAX, PNG_UINT_31_MAX);  // check_image_size() sets the limit
  png_set_chunk_malloc_max(decoder.png, kMaxChunkBytes);
  png_set_chunk_cache_max(decoder.png, kMaxChunks);
  png_read_info(decoder.png, decoder.info);
}

void start(Decoder& decoder) {
  png_set_expand(decoder.png);  // palette and 1, 2, 4 bits to 8; tRNS to alpha, which is stripped next
  png_set_strip_alpha(decoder.png);
  png_set_scale_16(decoder.png);
  png_set_gray_to_rgb(decoder.png);
  png_set_interlace_handling(decoder.png);
  png_read_update_info(decoder.png, decoder.info);
}

void read_rows(Decoder& decoder) {
  png_read_image(decoder.png, decoder.rows);
  png_read_end(decoder.png, decoder.info);
}

void run(Decoder& decoder, void (*step)(Decoder&)) {
  if (!guarded(decoder.jump, decoder, step)) throw IoError(str("broken PNG: ", decoder.message.data()));
}

int orientation_of(Decoder& decoder) {
  png_bytep exif = nullptr;
  png_uint_32 size = 0;
  if (png_get_eXIf_1(decoder.png, decoder.info, &size, &exif) == 0) return 1;
  return exif_orientation({reinterpret_cast<const char*>(exif), size});
}

}  // namespace

DecodedImage decode_png(std::string_view bytes, std::int64_t max_pixels) {
  Decoder decoder;
  decoder.rest = bytes;
  run(decoder, open);
  const std::int64_t height = png_get_image_height(decoder.png, decoder.info);
  const std::int64_t width = png_get_image_width(decoder.png, decoder.info);
  check_image_size("PNG", height, width, max_pixels);
  run(decoder, start);
  const std::size_t row_bytes = static_cast<std::size_t>(width) * 3;
  TESSERA_CHECK(png_get_rowbytes(decoder.png, decoder.info) == row_bytes, InternalError, "decode_png: rows have ",
                png_get_rowbytes(decoder.png, decoder.info), " bytes; needs ", row_bytes);
  std::vector<std::uint8_t> pixels(static_cast<std::size_t>(height) * row_bytes);
  std::vector<png_bytep> rows(static_cast<std::size_t>(height));
  for (std::size_t y = 0; y < rows.size(); ++y) rows[y] = pixels.data() + y * row_bytes;
  decoder.rows = rows.data();
  run(decoder, read_rows);
  return {{height, width, std::move(pixels)}, orientation_of(decoder)};
}

}  // namespace tessera
