#include "train/data/image.h"

#include <gtest/gtest.h>
#include <zlib.h>

#include <filesystem>
#include <fstream>
#include <random>

#include "core/support/error.h"
#include "tests/core/io/temporary_folder.h"
#include "tests/support/image_files.h"
#include "tests/train/data/decoding_error.h"

namespace tessera {
namespace {

using testing::Bytes;
using testing::encode_jpeg;
using testing::encode_png;
using testing::JpegKind;
using testing::PngKind;

Bytes grey(const Bytes& values) {
  Bytes pixels;
  for (const std::uint8_t value : values) pixels.insert(pixels.end(), 3, value);
  return pixels;
}

Bytes flat(unsigned pixels, const Bytes& color) {
  Bytes samples;
  for (unsigned i = 0; i < pixels; ++i) samples.insert(samples.end(), color.begin(), color.end());
  return samples;
}

void expect_near(const Image& image, const Bytes& color, int tolerance) {
  for (std::size_t i = 0; i < image.pixels.size(); ++i) {
    ASSERT_NEAR(image.pixels[i], color[i % 3], tolerance) << "at byte " << i;
  }
}

TEST(Image, GreyPngOfEveryDepthIsStretchedToBytes) {
  const auto read = [](const Bytes& rows, int bits) {
    return decode_image(encode_png(2, 3, rows, {.kind = PngKind::grey, .bits = bits})).pixels;
  };
  EXPECT_EQ(read({0b01000000, 0b10100000}, 1), grey({0, 255, 0, 255, 0, 255}));
  EXPECT_EQ(read({0b00011000, 0b11100100}, 2), grey({0, 85, 170, 255, 170, 85}));
  EXPECT_EQ(read({0x01, 0x20, 0xFE, 0xD0}, 4), grey({0, 17, 34, 255, 238, 221}));
  EXPECT_EQ(read({0, 1, 2, 253, 254, 255}, 8), grey({0, 1, 2, 253, 254, 255}));
  // 16-bit values become v / 257, rounded: 128 / 257 is 0.498 and 129 / 257 is 0.502.
  EXPECT_EQ(read({0, 0, 0, 128, 0, 129, 1, 1, 0x80, 0x80, 0xFF, 0xFF}, 16), grey({0, 0, 1, 1, 128, 255}));
}

TEST(Image, AlphaIsDroppedAndColoursStay) {
  EXPECT_EQ(decode_image(encode_png(1, 2, {7, 0, 200, 255}, {.kind = PngKind::grey_alpha})).pixels, grey({7, 200}));
  EXPECT_EQ(decode_image(encode_png(1, 2, {1, 2, 3, 0, 4, 5, 6, 128}, {.kind = PngKind::rgba})).pixels,
            (Bytes{1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(decode_image(encode_png(1, 1, {1, 1, 2, 2, 3, 3, 0, 0}, {.kind = PngKind::rgba, .bits = 16})).pixels,
            (Bytes{1, 2, 3}));
}

TEST(Image, PalettePngShowsItsColours) {
  const Bytes palette{10, 20, 30, 40, 50, 60, 70, 80, 90};
  const Bytes expected{70, 80, 90, 10, 20, 30, 40, 50, 60, 10, 20, 30};
  EXPECT_EQ(decode_image(encode_png(2, 2, {2, 0, 1, 0}, {.kind = PngKind::palette, .palette = palette})).pixels, expected);
  EXPECT_EQ(
      decode_image(encode_png(2, 2, {0b10000000, 0b01000000}, {.kind = PngKind::palette, .bits = 2, .palette = palette})).pixels,
      expected);
  EXPECT_EQ(
      decode_image(encode_png(2, 2, {2, 0, 1, 0}, {.kind = PngKind::palette, .palette = palette, .transparency = {0, 0, 128}}))
          .pixels,
      expected);
}

TEST(Image, InterlacedPngIsTheSameImage) {
  const Bytes pixels = testing::pattern(11, 13);
  EXPECT_EQ(decode_image(encode_png(11, 13, pixels)).pixels, pixels);
  EXPECT_EQ(decode_image(encode_png(11, 13, pixels, {.interlaced = true})).pixels, pixels);
}

TEST(Image, JpegOfEveryKind) {
  expect_near(decode_image(encode_jpeg(9, 17, flat(153, {90}), {.kind = JpegKind::grey})), {90, 90, 90}, 1);
  expect_near(decode_image(encode_jpeg(9, 17, flat(153, {200, 100, 50}))), {200, 100, 50}, 2);
  expect_near(decode_image(encode_jpeg(9, 17, flat(153, {200, 100, 50}), {.progressive = true, .subsampled = true})),
              {200, 100, 50}, 2);
  // Stored inverted: 255 is no ink. Where black leaves 128 of 255, 200 becomes 128 - (255 - 200) * 128 / 255 = 100.
  for (const JpegKind kind : {JpegKind::cmyk, JpegKind::ycck}) {
    expect_near(decode_image(encode_jpeg(9, 17, flat(153, {200, 100, 50, 255}), {.kind = kind})), {200, 100, 50}, 3);
    expect_near(decode_image(encode_jpeg(9, 17, flat(153, {200, 100, 50, 128}), {.kind = kind})), {100, 50, 25}, 3);
  }
}

TEST(Image, ProgressiveJpegHasTheBaselinePixels) {
  const Bytes pixels = testing::pattern(40, 24);
  const Image baseline = decode_image(encode_jpeg(40, 24, pixels, {.quality = 80}));
  EXPECT_EQ(baseline.height, 40);
  EXPECT_EQ(baseline.width, 24);
  EXPECT_EQ(decode_image(encode_jpeg(40, 24, pixels, {.quality = 80, .progressive = true})).pixels, baseline.pixels);
}

TEST(Image, AllEightOrientationsAreTurnedUpright) {
  const std::string expected[] = {"abcdef", "cbafed", "fedcba", "defabc", "adbecf", "daebfc", "fcebda", "cfbead"};
  const std::string stored = "abcdef";
  for (int orientation = 1; orientation <= 8; ++orientation) {
    for (const bool big_endian : {false, true}) {
      const std::string tiff = testing::orientation_tiff(orientation, big_endian);
      const Image image =
          decode_image(encode_png(2, 3, Bytes(stored.begin(), stored.end()), {.kind = PngKind::grey, .tiff = tiff}));
      const std::string& shown = expected[orientation - 1];
      EXPECT_EQ(image.pixels, grey(Bytes(shown.begin(), shown.end()))) << "orientation " << orientation;
      EXPECT_EQ(image.height, orientation < 5 ? 2 : 3);
      const Image photo = decode_image(encode_jpeg(8, 16, flat(128, {9}), {.kind = JpegKind::grey, .tiff = tiff}));
      EXPECT_EQ(photo.height, orientation < 5 ? 8 : 16) << "orientation " << orientation;
    }
  }
}

TEST(Image, DamagedOrientationCountsAsUpright) {
  const std::string tiff = testing::orientation_tiff(6);
  EXPECT_EQ(exif_orientation(tiff), 6);
  for (std::size_t length = 0; length < 34; ++length) EXPECT_EQ(exif_orientation(std::string_view(tiff).substr(0, length)), 1);
  EXPECT_EQ(exif_orientation(testing::orientation_tiff(0)), 1);
  EXPECT_EQ(exif_orientation(testing::orientation_tiff(9)), 1);
  std::string far = tiff;
  far[7] = '\x7f';  // the offset of the directory is past the end
  EXPECT_EQ(exif_orientation(far), 1);
}

TEST(Image, EveryTruncationIsAnError) {
  const Bytes pixels = testing::pattern(16, 16);
  for (const std::string& bytes : {encode_png(16, 16, pixels), encode_png(16, 16, pixels, {.interlaced = true}),
                                   encode_jpeg(16, 16, pixels), encode_jpeg(16, 16, pixels, {.progressive = true})}) {
    EXPECT_EQ(decoding_error(bytes), "");
    for (std::size_t length = 0; length < bytes.size(); ++length) {
      const std::string error = decoding_error(std::string_view(bytes).substr(0, length));
      ASSERT_TRUE(error.starts_with("broken ") || error == "not a JPEG or PNG file" || error == "the file is empty")
          << length << " of " << bytes.size() << ": " << error;
    }
  }
}

TEST(Image, SaysWhatIsWrong) {
  const std::string png = encode_png(16, 16, testing::pattern(16, 16));
  const std::string jpeg = encode_jpeg(16, 16, testing::pattern(16, 16));
  EXPECT_EQ(decoding_error(""), "the file is empty");
  EXPECT_EQ(decoding_error("GIF89a"), "not a JPEG or PNG file");
  EXPECT_EQ(decoding_error(png.substr(0, png.size() / 2)), "broken PNG: the file ends early");
  EXPECT_EQ(decoding_error(jpeg.substr(0, jpeg.size() / 2)), "broken JPEG: Premature end of JPEG file");
  std::string flipped = png;
  flipped[flipped.size() - 13] = static_cast<char>(flipped[flipped.size() - 13] ^ 1);  // the checksum of the pixels, before IEND
  EXPECT_EQ(decoding_error(flipped), "broken PNG: IDAT: CRC error");
}

TEST(Image, BytesAfterTheImageDoNoHarm) {
  const std::string jpeg = encode_jpeg(16, 16, testing::pattern(16, 16));
  EXPECT_EQ(decode_image(jpeg + "a phone's video").pixels, decode_image(jpeg).pixels);
}

std::string big_endian(std::uint32_t value) {
  std::string text;
  for (int shift = 24; shift >= 0; shift -= 8) text += static_cast<char>(value >> shift);
  return text;
}

TEST(Image, RefusesBombsBeforeTheyAllocate) {
  std::string png = encode_png(1, 1, {1, 2, 3});
  std::string header = "IHDR" + big_endian(50000) + big_endian(50000) + png.substr(24, 5);
  header += big_endian(
      static_cast<std::uint32_t>(crc32(0, reinterpret_cast<const Bytef*>(header.data()), static_cast<uInt>(header.size()))));
  png.replace(12, header.size(), header);
  EXPECT_EQ(decoding_error(png), "PNG of 50000x50000 pixels; at most 178956970 are read");

  std::string jpeg = encode_jpeg(16, 16, testing::pattern(16, 16));
  const std::size_t frame = jpeg.find("\xff\xc0");
  ASSERT_NE(frame, std::string::npos);
  jpeg.replace(frame + 5, 4, "\xff\xdc\xff\xdc");
  EXPECT_EQ(decoding_error(jpeg), "JPEG of 65500x65500 pixels; at most 178956970 are read");
}

TEST(Image, RefusesAJpegOfManyScans) {
  const std::string jpeg = encode_jpeg(16, 16, testing::pattern(16, 16), {.progressive = true});
  const std::size_t scan = jpeg.find("\xff\xda");
  std::size_t end = scan + 2;  // the end of the scan is the next marker; a stuffed 0xff 0x00 is none
  while (jpeg[end] != '\xff' || jpeg[end + 1] == '\0') ++end;
  std::string many = jpeg.substr(0, scan);
  for (int i = 0; i < 600; ++i) many += jpeg.substr(scan, end - scan);
  EXPECT_EQ(decoding_error(many + jpeg.substr(end)), "broken JPEG: more than 500 scans");
}

TEST(Image, NoChangeOfBytesDoesMoreThanFail) {
  const Bytes pixels = testing::pattern(24, 24);
  std::mt19937 random(7);
  int failed = 0;
  for (const std::string& bytes :
       {encode_png(24, 24, pixels, {.interlaced = true, .tiff = testing::orientation_tiff(5)}),
        encode_jpeg(24, 24, pixels, {.quality = 70, .subsampled = true, .tiff = testing::orientation_tiff(7)}),
        encode_jpeg(24, 24, pixels, {.quality = 70, .progressive = true})}) {
    for (int i = 0; i < 1000; ++i) {
      std::string changed = bytes;
      for (int k = 0; k < 1 + i % 3; ++k) changed[random() % changed.size()] = static_cast<char>(random());
      failed += !decoding_error(changed).empty();
    }
  }
  EXPECT_GT(failed, 1000);
}

TEST(Image, FilesAreNamedInErrors) {
  const TemporaryFolder folder;
  const std::filesystem::path path = folder.path() / "x.jpg";
  const auto error = [](const std::filesystem::path& file) { return message_of<IoError>([&] { read_image(file); }); };
  EXPECT_EQ(error(path.string() + ".absent"), path.string() + ".absent: no such file");
  EXPECT_EQ(error(path.parent_path()), path.parent_path().string() + ": is no regular file");
  std::ofstream(path, std::ios::binary) << "text";
  EXPECT_EQ(error(path), path.string() + ": not a JPEG or PNG file");
}

}  // namespace
}  // namespace tessera
