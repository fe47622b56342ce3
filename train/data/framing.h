// Which part of an image becomes the sample, for sets whose images are larger than a sample. A random frame is a function of
// (seed, epoch, sample) and the image's size.
#pragma once

#include <cstdint>

#include "core/rng.h"

namespace tessera {

struct Framing {
  enum class Kind {
    centre,  // the middle of the image whose shorter side was resized
    random,  // a random place of the same
    resized,  // a random part of the image, resized to the sample (Szegedy et al. 2015, "Going deeper with convolutions")
  };

  Kind kind = Kind::centre;
  double min_area = 1;  // resized: smallest share of the image's area
  RngStream stream = {};
  std::uint64_t epoch = 0;
  std::uint64_t sample = 0;
};

}  // namespace tessera
