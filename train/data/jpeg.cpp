#include <cstdio>  // before jpeglib.h, which needs FILE

#include <jerror.h>
#include <jpeglib.h>

#include <algorithm>
#include <array>

#include "core/support/error.h"
#include "train/data/image_codecs.h"

namespace tessera {
namespace {

constexpr int kExifMarker = JPEG_APP0 + 1;
constexpr std::string_view kExifPrefix("Exif\0\0", 6);
// Limits the scans: a small progressive file could ask for its pixels to be decoded thousands of times.
constexpr int kMaxScans = 500;

// Everything that a longjmp may leave half done. The caller's frame owns and destroys it.
struct Decoder {
  jpeg_error_mgr errors{};
  jpeg_progress_mgr progress{};
  jpeg_decompress_struct info{};
  std::jmp_buf jump{};
  std::array<char, JMSG_LENGTH_MAX> message{};  // of the first error
  std::string_view bytes;
  std::size_t scans_begin = 0;
  std::size_t left_over = 0;  // bytes of the scans that no pixel used
  std::uint8_t* pixels = nullptr;
  std::size_t row_bytes = 0;

  Decoder() = default;
  Decoder(const Decoder&) = delete;
  Decoder& operator=(const Decoder&) = delete;
  ~Decoder() { jpeg_destroy_decompress(&info); }  // frees what was allocated; reports nothing
};

Decoder& decoder_of(j_common_ptr info) { return *static_cast<Decoder*>(info->client_data); }

[[noreturn]] void on_error(j_common_ptr info) {
  Decoder& decoder = decoder_of(info);
  if (decoder.message[0] == '\0') info->err->format_message(info, decoder.message.data());
  std::longjmp(decoder.jump, 1);
}

// A negative level is a warning: the library continues with made-up pixels. Warnings that need no made-up pixels are ignored.
void on_message(j_common_ptr info, int level) {
  if (level >= 0) return;
  const int code = info->err->msg_code;
  const bool in_scans = decoder_of(info).scans_begin > 0;
  if (code == JWRN_EXTRANEOUS_DATA && in_scans) decoder_of(info).left_over += static_cast<std::size_t>(info->err->msg_parm.i[0]);
  const bool harmless = code == JWRN_EXTRANEOUS_DATA || code == JWRN_ADOBE_XFORM || code == JWRN_JFIF_MAJOR ||
                        code == JWRN_BOGUS_PROGRESSION || code == JWRN_TOO_MUCH_DATA;
  if (!harmless) on_error(info);
}

void on_progress(j_common_ptr info) {
  const auto* decompress = reinterpret_cast<j_decompress_ptr>(info);
  if (decompress->input_scan_number <= kMaxScans) return;
  Decoder& decoder = decoder_of(info);
  std::snprintf(decoder.message.data(), decoder.message.size(), "more than %d scans", kMaxScans);
  std::longjmp(decoder.jump, 1);
}

void open(Decoder& decoder) {
  jpeg_create_decompress(&decoder.info);
  decoder.info.client_data = &decoder;
  decoder.info.progress = &decoder.progress;
  jpeg_mem_src(&decoder.info, reinterpret_cast<const unsigned char*>(decoder.bytes.data()), decoder.bytes.size());
  jpeg_save_markers(&decoder.info, kExifMarker, 0xFFFF);
  jpeg_read_header(&decoder.info, TRUE);
  decoder.scans_begin = decoder.bytes.size() - decoder.info.src->bytes_in_buffer;
}

void start(Decoder& decoder) {
  const bool inks = decoder.info.jpeg_color_space == JCS_CMYK || decoder.info.jpeg_color_space == JCS_YCCK;
  decoder.info.out_color_space = inks ? JCS_CMYK : JCS_RGB;
  jpeg_start_decompress(&decoder.info);
}

void read_rows(Decoder& decoder) {
  while (decoder.info.output_scanline < decoder.info.output_height) {
    JSAMPROW row = decoder.pixels + decoder.info.output_scanline * decoder.row_bytes;
    jpeg_read_scanlines(&decoder.info, &row, 1);
  }
  jpeg_finish_decompress(&decoder.info);
}

void run(Decoder& decoder, void (*step)(Decoder&)) {
  if (!guarded(decoder.jump, decoder, step)) throw IoError(str("broken JPEG: ", decoder.message.data()));
}

// Some writers put a few bytes after a scan. As many bytes as a row of blocks takes mean that the header lost rows or columns.
void check_nothing_is_left(const Decoder& decoder) {
  const std::size_t scans = decoder.bytes.size() - decoder.info.src->bytes_in_buffer - decoder.scans_begin;
  TESSERA_CHECK(decoder.left_over * (decoder.info.total_iMCU_rows + 1) <= scans, IoError, "broken JPEG: ", decoder.left_over,
                " bytes of pixels are left over; the header's size is too small");
}

int orientation_of(const jpeg_decompress_struct& info) {
  for (const jpeg_marker_struct* marker = info.marker_list; marker != nullptr; marker = marker->next) {
    const std::string_view data(reinterpret_cast<const char*>(marker->data), marker->data_length);
    if (marker->marker == kExifMarker && data.starts_with(kExifPrefix)) return exif_orientation(data.substr(kExifPrefix.size()));
  }
  return 1;
}

// a * b / 255, rounded as PIL rounds it.
int multiply(int a, int b) {
  const int product = a * b + 128;
  return ((product >> 8) + product) >> 8;
}

// Adobe stores 255 minus the ink. Red = (white - black ink) - the part of that difference that cyan absorbs; likewise the rest.
std::vector<std::uint8_t> inks_to_rgb(const std::vector<std::uint8_t>& stored) {
  std::vector<std::uint8_t> rgb(stored.size() / 4 * 3);
  for (std::size_t pixel = 0; pixel < stored.size() / 4; ++pixel) {
    const std::uint8_t* from = &stored[pixel * 4];
    for (std::size_t c = 0; c < 3; ++c) {
      rgb[pixel * 3 + c] = static_cast<std::uint8_t>(from[3] - multiply(255 - from[c], from[3]));
    }
  }
  return rgb;
}

}  // namespace

DecodedImage decode_jpeg(std::string_view bytes, std::int64_t max_pixels) {
  Decoder decoder;
  decoder.bytes = bytes;
  decoder.info.err = jpeg_std_error(&decoder.errors);
  decoder.info.client_data = &decoder;
  decoder.errors.error_exit = on_error;
  decoder.errors.emit_message = on_message;
  decoder.progress.progress_monitor = on_progress;
  run(decoder, open);
  const auto height = static_cast<std::int64_t>(decoder.info.image_height);
  const auto width = static_cast<std::int64_t>(decoder.info.image_width);
  check_image_size("JPEG", height, width, max_pixels);
  run(decoder, start);
  decoder.row_bytes = static_cast<std::size_t>(width) * static_cast<std::size_t>(decoder.info.output_components);
  std::vector<std::uint8_t> pixels(static_cast<std::size_t>(height) * decoder.row_bytes);
  decoder.pixels = pixels.data();
  const int orientation = orientation_of(decoder.info);  // finishing drops the markers
  run(decoder, read_rows);
  check_nothing_is_left(decoder);
  if (decoder.info.out_color_space == JCS_CMYK) pixels = inks_to_rgb(pixels);
  return {{height, width, std::move(pixels)}, orientation};
}

}  // namespace tessera
