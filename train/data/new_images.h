// Images without labels, brought to a network as an evaluation brings those of the run's data set.
//   JPEG, PNG     what train/data/image.h makes of the file; for a network of one channel the image's luma, as PIL's
//                 convert("L") has it: a grey image keeps its bytes
//   .npy of u8    images too: [n, h, w, c], or [h, w, c] for one
//   .npy of f32   what the network reads: [n, ...] or [...] of its input's shape, taken as it is
// Images of a data set that resizes (name: image-folder) may have any size. All others must have the network's.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "train/data/image.h"
#include "train/data/image_dataset.h"
#include "train/data/new_samples.h"
#include "train/data/transforms.h"

namespace tessera {

class NewImages {
 public:
  // `description`: that of LabelledImages, whose preprocessing it has. `input`: of one sample, [1, h, w, c]. Throws ConfigError
  // where the two do not fit or a number is out of range.
  NewImages(const Value& description, const Shape& input);

  // The samples of an image file or, where the name ends in .npy, of an array. Throws IoError "path: reason". The result must
  // not outlive this.
  std::unique_ptr<NewSamples> open(const std::string& path) const;

  // Writes the part of an image that the network sees, normalised, to `out`. `pixels` are [height, width, c]. Throws IoError
  // with the reason alone.
  void bring(std::int64_t height, std::int64_t width, std::vector<std::uint8_t> pixels, float* out) const;
  const Shape& sample() const noexcept { return sample_; }  // [h, w, c]
  bool takes_any_size() const noexcept { return resizing_.has_value(); }

 private:
  Shape sample_;
  std::optional<Resizing> resizing_;
  std::optional<NormalizationTable> table_;
};

}  // namespace tessera
