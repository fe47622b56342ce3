#include "train/data/new_images.h"

#include <algorithm>
#include <utility>

#include "core/config/read.h"
#include "core/io/npy.h"
#include "core/support/error.h"
#include "train/data/labelled_images.h"
#include "train/data/resample.h"

namespace tessera {
namespace {

// The keys of LabelledImages::description().
struct Preprocessing {
  Normalization normalization;
  std::optional<std::int64_t> resize, crop;

  void fields(Fields& f) {
    normalization.fields(f);
    f.add("resize", resize, {.help = "length that the shorter side is resized to", .range = between(1, 16384)});
    f.add("crop", crop, {.help = "side of the square in its centre", .range = between(1, 16384)});
  }
};

// PIL's luma (ITU-R 601-2). Equal channels keep their value, because the weights sum to 2^16.
std::vector<std::uint8_t> grey(const std::vector<std::uint8_t>& rgb) {
  std::vector<std::uint8_t> luma(rgb.size() / 3);
  for (std::size_t i = 0; i < luma.size(); ++i) {
    luma[i] = static_cast<std::uint8_t>((rgb[3 * i] * 19595 + rgb[3 * i + 1] * 38470 + rgb[3 * i + 2] * 7471 + 0x8000) >> 16);
  }
  return luma;
}

// A file that holds one image. It is decoded and resized at once, so that only the sample of a large image is kept.
class ImageSample final : public NewSamples {
 public:
  ImageSample(const NewImages& rules, const std::string& path)
      : field_{"image", DType::f32, rules.sample()}, values_(Tensor::empty(rules.sample())) {
    const std::int64_t channels = rules.sample()[2];
    TESSERA_CHECK(channels == 1 || channels == 3, IoError, path, ": an image has 1 or 3 channels, the network takes ", channels);
    Image image = read_image(path);
    try {
      rules.bring(image.height, image.width, channels == 1 ? grey(image.pixels) : std::move(image.pixels), values_.data<float>());
    } catch (const IoError& error) {
      throw IoError(str(path, ": ", error.what()));
    }
  }

  const Field& field() const override { return field_; }
  std::int64_t size() const override { return 1; }
  void read(std::int64_t, const Tensor& out) override { out.copy_from(values_); }

 private:
  Field field_;
  Tensor values_;
};

class ArraySamples final : public NewSamples {
 public:
  ArraySamples(const NewImages& rules, const std::string& path)
      : rules_(rules), path_(path), file_(path), field_{"image", DType::f32, rules.sample()} {
    const Shape& shape = file_.shape();
    numbered_ = shape.rank() == rules.sample().rank() + 1;
    each_ = numbered_ ? shape.erase(0) : shape;
    TESSERA_CHECK(fits(), IoError, path, ": is ", file_.dtype(), ' ', shape, "; the network takes ", wanted());
    TESSERA_CHECK(size() > 0, IoError, path, ": is ", shape, ": holds no sample");
  }

  const Field& field() const override { return field_; }
  std::int64_t size() const override { return numbered_ ? file_.shape()[0] : 1; }
  bool numbered() const override { return numbered_; }

  void read(std::int64_t index, const Tensor& out) override {
    const std::int64_t first = index * each_.numel();
    if (file_.dtype() == DType::f32) return file_.read(first, each_.numel(), out.data<float>());
    std::vector<std::uint8_t> pixels(static_cast<std::size_t>(each_.numel()));
    file_.read(first, each_.numel(), pixels.data());
    rules_.bring(each_[0], each_[1], std::move(pixels), out.data<float>());
  }

 private:
  bool any_size() const { return file_.dtype() == DType::u8 && rules_.takes_any_size(); }
  bool fits() const {
    const Shape& sample = rules_.sample();
    if (!any_size()) return each_ == sample;
    return each_.rank() == 3 && each_[2] == sample[2] && each_[0] > 0 && each_[1] > 0 && each_[0] <= kMaxImagePixels / each_[1];
  }
  std::string wanted() const {
    const Shape& sample = rules_.sample();
    const std::string one = any_size() ? str("height, width, ", sample[2]) : str(sample[0], ", ", sample[1], ", ", sample[2]);
    return str(file_.dtype(), " [n, ", one, "] or [", one, ']');
  }

  const NewImages& rules_;
  std::string path_;
  NpyFile file_;
  Field field_;
  bool numbered_ = false;
  Shape each_;
};

}  // namespace

NewImages::NewImages(const Value& description, const Shape& input) {
  TESSERA_CHECK(input.rank() == 4, ConfigError, "the network takes ", input, "; an image is [1, h, w, c]");
  sample_ = input.erase(0);
  const Value* const kept = description.find(kPreprocessingKey);
  TESSERA_CHECK(kept != nullptr, ConfigError, "the network was saved without '", kPreprocessingKey,
                "', which tells how images are brought to it");
  const auto preprocessing = read<Preprocessing>(*kept, kPreprocessingKey);
  table_.emplace(preprocessing.normalization, sample_[2]);
  TESSERA_CHECK(preprocessing.resize.has_value() == preprocessing.crop.has_value(), ConfigError, kPreprocessingKey,
                ": needs both of resize and crop, or none");
  if (!preprocessing.resize) return;
  resizing_ = Resizing{*preprocessing.resize, *preprocessing.crop};
  TESSERA_CHECK(resizing_->crop <= resizing_->shorter && sample_ == (Shape{resizing_->crop, resizing_->crop, 3}), ConfigError,
                kPreprocessingKey, ": crop is ", resizing_->crop, " of resize ", resizing_->shorter, ", the network takes ",
                sample_);
}

std::unique_ptr<NewSamples> NewImages::open(const std::string& path) const {
  if (path.ends_with(".npy")) return std::make_unique<ArraySamples>(*this, path);
  return std::make_unique<ImageSample>(*this, path);
}

void NewImages::bring(std::int64_t height, std::int64_t width, std::vector<std::uint8_t> pixels, float* out) const {
  if (!resizing_) {
    TESSERA_CHECK(height == sample_[0] && width == sample_[1], IoError, "is ", height, 'x', width, " pixels; the network takes ",
                  sample_[0], 'x', sample_[1], " ones, which its data set did not resize");
    return table_->apply(pixels, out);
  }
  const Image image{height, width, std::move(pixels)};
  std::vector<std::uint8_t> part(static_cast<std::size_t>(sample_.numel()));
  resample(image, choose_frame(Framing{}, height, width, resizing_->shorter, resizing_->crop), resizing_->crop, part);
  table_->apply(part, out);
}

}  // namespace tessera
