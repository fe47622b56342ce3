// The two formats behind decode_image(). Both libraries report errors by longjmp: it never crosses a frame that has something
// to destroy, because every call into them goes through `guarded` with a function of trivial locals.
#pragma once

#include <csetjmp>
#include <string_view>

#include "train/data/image.h"

namespace tessera {

// Stored pixels as RGB, and the orientation that the file asks for.
struct DecodedImage {
  Image image;
  int orientation = 1;
};
DecodedImage decode_jpeg(std::string_view bytes, std::int64_t max_pixels);
DecodedImage decode_png(std::string_view bytes, std::int64_t max_pixels);

// Throws IoError when the image is empty or larger than max_pixels.
void check_image_size(std::string_view format, std::int64_t height, std::int64_t width, std::int64_t max_pixels);

// Runs step(argument); false when it left by longjmp to `jump`. The step and what it calls hold no object with a destructor.
template <class T>
bool guarded(std::jmp_buf& jump, T& argument, void (*step)(T&)) {
  if (setjmp(jump) != 0) return false;
  step(argument);
  return true;
}

}  // namespace tessera
