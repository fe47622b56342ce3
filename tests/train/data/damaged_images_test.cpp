// Damaged JPEG and PNG files. PNG has a checksum of every chunk, so each changed bit is found. JPEG has none: inconsistent data
// is found, but a changed value only gives other pixels of the same size.
#include <gtest/gtest.h>
#include <zlib.h>

#include <random>

#include "core/support/error.h"
#include "tests/support/image_files.h"
#include "tests/train/data/decoding_error.h"

namespace tessera {
namespace {

using namespace std::string_literals;
using testing::Bytes;
using testing::encode_jpeg;
using testing::encode_png;
using testing::PngKind;

// Limits the pixels, so that a damaged size does not cost the time of a large image.
std::string error_of(std::string_view bytes) { return decoding_error(bytes, 1 << 16); }

std::string flipped(std::string bytes, std::size_t bit) {
  bytes[bit / 8] = static_cast<char>(bytes[bit / 8] ^ (1 << bit % 8));
  return bytes;
}

struct Damage {
  const char* name;
  std::string bytes;
  const char* message;
};

void expect_found(const std::vector<Damage>& damages) {
  for (const Damage& damage : damages) EXPECT_EQ(error_of(damage.bytes), damage.message) << damage.name;
}

struct Chunk {
  std::string type;
  std::string data;
};

std::string big_endian(std::uint32_t value, int bytes = 4) {
  std::string text;
  for (int shift = 8 * (bytes - 1); shift >= 0; shift -= 8) text += static_cast<char>(value >> shift);
  return text;
}

std::vector<Chunk> chunks_of(const std::string& png) {
  std::vector<Chunk> chunks;
  for (std::size_t at = 8; at < png.size();) {
    std::size_t size = 0;
    for (std::size_t i = 0; i < 4; ++i) size = size << 8 | static_cast<unsigned char>(png[at + i]);
    chunks.push_back({png.substr(at + 4, 4), png.substr(at + 8, size)});
    at += 12 + size;
  }
  return chunks;
}

// Writes correct checksums, so that only the content is wrong.
std::string png_of(const std::vector<Chunk>& chunks) {
  std::string png = "\x89PNG\r\n\x1a\n";
  for (const Chunk& chunk : chunks) {
    const std::string body = chunk.type + chunk.data;
    const auto sum = crc32(0, reinterpret_cast<const Bytef*>(body.data()), static_cast<uInt>(body.size()));
    png += big_endian(static_cast<std::uint32_t>(chunk.data.size())) + body + big_endian(static_cast<std::uint32_t>(sum));
  }
  return png;
}

// The file with one byte of a chunk's checksum changed.
std::string with_bad_sum(const std::string& png, const std::string& type) {
  std::string bytes = png;
  std::size_t at = 8;
  for (const Chunk& chunk : chunks_of(png)) {
    at += 12 + chunk.data.size();
    if (chunk.type == type) break;
  }
  bytes[at - 1] = static_cast<char>(bytes[at - 1] ^ 1);
  return bytes;
}

std::string palette_png() {
  return encode_png(2, 2, {2, 0, 1, 0},
                    {.kind = PngKind::palette,
                     .palette = {1, 2, 3, 4, 5, 6, 7, 8, 9},
                     .transparency = {0, 128},
                     .tiff = testing::orientation_tiff(6)});
}

// The palette image after `change` has edited chunk `type`. The chunk is dropped if `change` clears its type.
template <class Change>
std::string changed_png(const std::string& type, Change&& change) {
  std::vector<Chunk> result;
  for (Chunk& chunk : chunks_of(palette_png())) {
    if (chunk.type == type) change(chunk);
    if (!chunk.type.empty()) result.push_back(chunk);
  }
  return png_of(result);
}
std::string png_header(std::size_t at, const std::string& field) {
  return changed_png("IHDR", [&](Chunk& chunk) { chunk.data.replace(at, field.size(), field); });
}
std::string png_without(const std::string& type) {
  return changed_png(type, [](Chunk& chunk) { chunk.type.clear(); });
}

TEST(DamagedPng, EveryBitCounts) {
  const Bytes pixels = testing::pattern(5, 7);
  for (const std::string& png : {palette_png(), encode_png(5, 7, pixels, {.interlaced = true}), encode_png(5, 7, pixels)}) {
    EXPECT_EQ(error_of(png), "");
    for (std::size_t bit = 0; bit < 8 * png.size(); ++bit) ASSERT_NE(error_of(flipped(png, bit)), "") << "bit " << bit;
  }
}

TEST(DamagedPng, ChecksumsOfAllChunks) {
  const std::string png = palette_png();
  for (const char* type : {"IHDR", "PLTE", "tRNS", "eXIf", "IDAT", "IEND"}) {
    EXPECT_EQ(error_of(with_bad_sum(png, type)), str("broken PNG: ", type, ": CRC error"));
  }
}

TEST(DamagedPng, WhatDoesNotFitTogether) {
  const std::string png = palette_png();
  const std::vector<Chunk> other = chunks_of(encode_png(1, 1, {1, 2, 3}));
  std::string long_chunk = png;
  long_chunk[8] = '\x7f';
  expect_found({
      {"nothing changed", png_of(chunks_of(png)), ""},
      {"signature without its high bit", "\x09" + png.substr(1), "not a JPEG or PNG file"},
      {"line ends of a text transfer", "\x89PNG\n\x1a\n" + png.substr(8), "not a JPEG or PNG file"},
      {"signature alone", png.substr(0, 8), "broken PNG: the file ends early"},
      {"length past the end", long_chunk, "broken PNG: IHDR: invalid"},
      {"no header", png_without("IHDR"), "broken PNG: PLTE: missing IHDR"},
      {"width 0", png_header(0, "\0\0\0\0"s), "broken PNG: Invalid IHDR data"},
      {"height 0", png_header(4, "\0\0\0\0"s), "broken PNG: Invalid IHDR data"},
      {"width above 2^31", png_header(0, "\xff\0\0\0"s), "broken PNG: PNG unsigned integer out of range"},
      {"height doubled", png_header(4, "\0\0\0\4"s), "broken PNG: Not enough image data"},
      {"width above our limit", png_header(0, "\1\0\0\0"s), "PNG of 2x16777216 pixels; at most 65536 are read"},
      {"3 bits", png_header(8, "\3"), "broken PNG: Invalid IHDR data"},
      {"colour type 5", png_header(9, "\5"), "broken PNG: Invalid IHDR data"},
      {"16-bit palette", png_header(8, "\x10"), "broken PNG: Invalid IHDR data"},
      {"compression 1", png_header(10, "\1"), "broken PNG: Invalid IHDR data"},
      {"filter method 1", png_header(11, "\1"), "broken PNG: Invalid IHDR data"},
      {"interlace 2", png_header(12, "\2"), "broken PNG: Invalid IHDR data"},
      {"header of 12 bytes", changed_png("IHDR", [](Chunk& c) { c.data.pop_back(); }), "broken PNG: IHDR: invalid"},
      {"no palette", png_without("PLTE"), "broken PNG: IDAT: Missing PLTE before IDAT"},
      {"palette of 4 bytes", changed_png("PLTE", [](Chunk& c) { c.data.resize(4); }), "broken PNG: PLTE: invalid"},
      {"no pixels", png_without("IDAT"), "broken PNG: IEND: out of place"},
      {"pixels cut", changed_png("IDAT", [](Chunk& c) { c.data.resize(c.data.size() / 2); }),
       "broken PNG: Not enough image data"},
      {"pixels of another image", changed_png("IDAT", [&](Chunk& c) { c.data = other[1].data; }),
       "broken PNG: Not enough image data"},
      {"pixels that are no deflate stream", changed_png("IDAT", [](Chunk& c) { c.data.assign(c.data.size(), 'x'); }),
       "broken PNG: IDAT: incorrect header check"},
      {"no end", png_without("IEND"), "broken PNG: the file ends early"},
      {"unknown critical chunk", changed_png("eXIf", [](Chunk& c) { c.type = "EXIF"; }),
       "broken PNG: EXIF: unhandled critical chunk"},
      {"type that is no letter", changed_png("eXIf", [](Chunk& c) { c.type = "e\0If"s; }),
       "broken PNG: e[00]If: invalid chunk type"},
      {"header of a JPEG in front", "\xff\xd8\xff" + png, "broken JPEG: Unsupported marker type 0x89"},
  });
}

// A 40x24 JPEG of noise: 5 rows of 3 blocks, all rows about equally long.
std::string noisy_jpeg(bool progressive = false) {
  std::mt19937 random(5);
  Bytes pixels(40 * 24 * 3);
  for (std::uint8_t& value : pixels) value = static_cast<std::uint8_t>(random());
  return encode_jpeg(40, 24, pixels, {.quality = 80, .progressive = progressive});
}

std::size_t find_marker(const std::string& jpeg, char marker) {
  const std::size_t at = jpeg.find("\xff"s + marker);
  EXPECT_NE(at, std::string::npos);
  return at;
}
std::string without_segment(const std::string& jpeg, char marker) {
  const std::size_t at = find_marker(jpeg, marker);
  const std::size_t size = static_cast<unsigned char>(jpeg[at + 2]) * 256u + static_cast<unsigned char>(jpeg[at + 3]);
  return jpeg.substr(0, at) + jpeg.substr(at + 2 + size);
}
std::string with_field(std::string jpeg, char marker, std::size_t at, const std::string& field) {
  return jpeg.replace(find_marker(jpeg, marker) + at, field.size(), field);
}

constexpr char kFrame = '\xc0';  // SOF0: length (2), precision, height (2), width (2), components, ...
constexpr char kHuffman = '\xc4';
constexpr char kQuantisation = '\xdb';
constexpr char kScan = '\xda';

constexpr const char* kEndsEarly = "broken JPEG: Corrupt JPEG data: premature end of data segment";

TEST(DamagedJpeg, WhatDoesNotFitTogether) {
  const std::string jpeg = noisy_jpeg();
  expect_found({
      {"nothing changed", jpeg, ""},
      {"start marker alone", jpeg.substr(0, 2), "not a JPEG or PNG file"},
      {"second start marker", jpeg.substr(0, 2) + jpeg, "broken JPEG: Invalid JPEG file structure: two SOI markers"},
      {"no frame", without_segment(jpeg, kFrame), "broken JPEG: Invalid JPEG file structure: SOS before SOF"},
      {"no quantisation table", without_segment(jpeg, kQuantisation), "broken JPEG: Quantization table 0x00 was not defined"},
      {"no scan", without_segment(jpeg, kScan).substr(0, find_marker(jpeg, kScan)) + "\xff\xd9",
       "broken JPEG: Invalid JPEG file structure: missing SOS marker"},
      {"height 0", with_field(jpeg, kFrame, 5, "\0\0"s), "broken JPEG: Empty JPEG image (DNL not supported)"},
      {"width 0", with_field(jpeg, kFrame, 7, "\0\0"s), "broken JPEG: Empty JPEG image (DNL not supported)"},
      {"height above our limit", with_field(jpeg, kFrame, 5, "\xff\0"s), "JPEG of 65280x24 pixels; at most 65536 are read"},
      {"height doubled", with_field(jpeg, kFrame, 5, "\0\x50"s), kEndsEarly},
      {"12 bits", with_field(jpeg, kFrame, 4, "\x0c"), "broken JPEG: Unsupported JPEG data precision 12"},
      {"no components", with_field(jpeg, kFrame, 9, "\0"s), "broken JPEG: Empty JPEG image (DNL not supported)"},
      {"sampling factor 0", with_field(jpeg, kFrame, 11, "\0"s), "broken JPEG: Bogus sampling factors"},
      {"frame of 10 bytes", with_field(jpeg, kFrame, 2, "\0\x0a"s), "broken JPEG: Bogus marker length"},
      {"scan of a component that is not there", with_field(jpeg, kScan, 5, "\x09"), "broken JPEG: Invalid component ID 9 in SOS"},
      {"Huffman table with too many codes", with_field(jpeg, kHuffman, 5, "\xff"), "broken JPEG: Bogus Huffman table definition"},
      {"no end", jpeg.substr(0, jpeg.size() - 2), "broken JPEG: Premature end of JPEG file"},
      {"end in the middle", jpeg.substr(0, jpeg.size() / 2) + "\xff\xd9", kEndsEarly},
      {"unknown marker in the data", with_field(jpeg, kScan, 200, "\xff\xf5"), kEndsEarly},
  });
}

TEST(DamagedJpeg, AHeaderTooSmallForTheDataIsFound) {
  for (const bool progressive : {false, true}) {
    const std::string jpeg = noisy_jpeg(progressive);
    const char frame = progressive ? '\xc2' : kFrame;
    EXPECT_EQ(error_of(jpeg), "");
    for (const char height : {'\x08', '\x10', '\x18'}) {
      EXPECT_NE(error_of(with_field(jpeg, frame, 5, "\0"s + height)).find("left over; the header's size is too small"),
                std::string::npos)
          << int{height};
    }
    EXPECT_NE(error_of(with_field(jpeg, frame, 7, "\0\x08"s)), "");
  }
  const std::string jpeg = noisy_jpeg();
  const std::string padded = jpeg.substr(0, jpeg.size() - 2) + std::string(32, '\0') + "\xff\xd9";
  EXPECT_EQ(error_of(padded), "") << "a few bytes behind the scan are some writers' habit";
}

TEST(DamagedJpeg, AChangedBitOfTheScanIsAnErrorOrOtherPixels) {
  std::mt19937 random(6);
  for (const bool progressive : {false, true}) {
    const std::string jpeg = noisy_jpeg(progressive);
    const std::size_t scan = find_marker(jpeg, kScan) + 14;
    int refused = 0;
    for (int i = 0; i < 1000; ++i) {
      const std::string changed = flipped(jpeg, 8 * scan + random() % (8 * (jpeg.size() - scan)));
      if (!error_of(changed).empty()) {
        ++refused;
        continue;
      }
      const Image image = decode_image(changed);
      ASSERT_EQ(image.height, 40);
      ASSERT_EQ(image.width, 24);
    }
    EXPECT_GT(refused, 0);
  }
}

TEST(DamagedJpeg, EveryBitOfTheHeaderIsAnErrorOrAnImage) {
  const std::string jpeg = noisy_jpeg();
  int refused = 0;
  const std::size_t bits = 8 * (find_marker(jpeg, kScan) + 14);
  for (std::size_t bit = 0; bit < bits; ++bit) refused += !error_of(flipped(jpeg, bit)).empty();
  EXPECT_GT(refused, static_cast<int>(bits / 4));
}

}  // namespace
}  // namespace tessera
