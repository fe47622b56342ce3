#include "train/data/labelled_images.h"

#include <utility>

#include "core/config/read.h"

namespace tessera {

LabelledImages::LabelledImages(std::shared_ptr<const ImageDataset> images, const Normalization& normalization,
                               const std::vector<AugmentConfig>& augment, std::uint64_t seed, StandIns stand_ins)
    : images_(std::move(images)),
      fields_{{"image", DType::f32, images_->sample_shape()}, {"label", DType::i64, {}}},
      normalization_(normalization),
      table_(normalization, images_->sample_shape().dim(2)),
      augmentation_(augment, images_->sample_shape(), normalization, seed),
      unaugmented_({}, images_->sample_shape(), normalization, seed),
      stand_ins_(std::move(stand_ins)) {}

void LabelledImages::assemble(std::span<const std::int64_t> samples, std::optional<std::int64_t> epoch, const Batch& out) const {
  const Augmentation& augmentation = epoch ? augmentation_ : unaugmented_;
  const std::int64_t numel = fields_[0].shape.numel();
  std::vector<std::uint8_t> pixels(static_cast<std::size_t>(numel)), scratch(pixels.size());
  float* image = out.at("image").data<float>();
  std::int64_t* label = out.at("label").data<std::int64_t>();
  for (const std::int64_t sample : samples) {
    *label++ = images_->labels.data<std::int64_t>()[sample];  // a stand-in has the same class
    images_->read(stand_ins_.of(sample, epoch.value_or(0)), augmentation.framing(epoch.value_or(0), sample), pixels);
    augmentation.apply(pixels, scratch, epoch.value_or(0), sample);
    table_.apply(pixels, image);
    image += numel;
  }
}

Value LabelledImages::description() const {
  Value description = Value::map();
  description.set(kClassesKey, Value::list({images_->classes.begin(), images_->classes.end()}));
  Value preprocessing = write(normalization_);
  if (const std::optional<Resizing> resizing = images_->resizing()) {
    preprocessing.set("resize", resizing->shorter);
    preprocessing.set("crop", resizing->crop);
  }
  description.set(kPreprocessingKey, std::move(preprocessing));
  return description;
}

std::vector<std::string> class_names(const Value& description) {
  std::vector<std::string> names;
  for (const Value& name : description.at(kClassesKey).as_list()) names.push_back(name.as_string());
  return names;
}

}  // namespace tessera
