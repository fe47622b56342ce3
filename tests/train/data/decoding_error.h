// Why bytes are no image.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "tests/support/message_of.h"
#include "train/data/image.h"

namespace tessera {

// The message with which decode_image refuses them; "" when it gives an image, whose pixels are then as many as its size says.
inline std::string decoding_error(std::string_view bytes, std::int64_t max_pixels = kMaxImagePixels) {
  return message_of<IoError>([&] {
    const Image image = decode_image(bytes, max_pixels);
    EXPECT_EQ(static_cast<std::int64_t>(image.pixels.size()), image.height * image.width * 3);
  });
}

}  // namespace tessera
