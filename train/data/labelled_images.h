// Labelled images as a network takes them: "image" f32 [h, w, c], augmented where a training sample is asked for, and normalised;
// "label" i64 [], the number of its class.
#pragma once

#include <memory>

#include "train/data/dataset.h"
#include "train/data/image_dataset.h"
#include "train/data/stand_ins.h"
#include "train/data/transforms.h"

namespace tessera {

class LabelledImages final : public Dataset {
 public:
  // Throws ConfigError on a normalisation or augmentation that does not fit the images.
  LabelledImages(std::shared_ptr<const ImageDataset> images, const Normalization& normalization,
                 const std::vector<AugmentConfig>& augment = {}, std::uint64_t seed = 0, StandIns stand_ins = {});

  std::string_view name() const override { return images_->name; }
  std::int64_t size() const override { return images_->size(); }
  const std::vector<Field>& fields() const override { return fields_; }
  std::size_t bytes() const override { return images_->pixel_bytes() + images_->labels.bytes(); }
  void assemble(std::span<const std::int64_t> samples, std::optional<std::int64_t> epoch, const Batch& out) const override;
  std::string fingerprint() const override { return tessera::fingerprint(*images_); }
  // {classes: [...], preprocessing: {mean: [...], std: [...]}}, with resize and crop where files are resized: what a program has
  // to do to an image that the network is to classify.
  Value description() const override;
  std::string origin(std::int64_t index) const override { return images_->origin(index); }
  bool has_files() const override { return images_->has_files(); }
  bool is_left_out(std::int64_t index) const override { return images_->is_left_out(index); }
  std::vector<BrokenImage> met_broken() const override { return images_->met_broken(); }

 private:
  std::shared_ptr<const ImageDataset> images_;
  std::vector<Field> fields_;
  Normalization normalization_;
  NormalizationTable table_;
  Augmentation augmentation_;
  Augmentation unaugmented_;
  StandIns stand_ins_;
};

inline constexpr const char* kClassesKey = "classes";  // of the description
inline constexpr const char* kPreprocessingKey = "preprocessing";

// The names of the classes that a description tells, in the order of their numbers.
std::vector<std::string> class_names(const Value& description);

}  // namespace tessera
