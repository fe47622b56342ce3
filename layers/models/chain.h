// Builds a sequential while following the shape of its running output.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "layers/conv2d.h"
#include "layers/sequential.h"

namespace tessera::models {

class Chain {
 public:
  explicit Chain(const Shape& input) : shape_(input), root_(std::make_unique<Sequential>()) {}

  const Shape& shape() const noexcept { return shape_; }
  std::int64_t features() const { return shape_.dim(-1); }  // channels of an image, features of a row
  std::size_t size() const noexcept { return root_->children().size(); }

  Chain& add(std::string name, std::unique_ptr<Module> module);
  template <class M>
  Chain& add(std::string name, typename M::Config config = {}) {
    return add(std::move(name), std::make_unique<M>(config));
  }
  // Input channels come from the running shape.
  Chain& conv(std::string name, Conv2dConfig config);
  Chain& batch_norm(std::string name);
  Chain& linear(std::string name, std::int64_t out);

  std::unique_ptr<Sequential> finish() { return std::move(root_); }

 private:
  Shape shape_;
  std::unique_ptr<Sequential> root_;
};

// The key `width` of networks that are also made narrower and wider.
void width_field(Fields& f, std::optional<double>& width);
// The channels of a layer that has `channels` at width 1: max(1, round(width channels)), halves away from zero.
std::int64_t scaled_channels(std::optional<double> width, std::int64_t channels);

// "name: input is [n, 8]; needs images [n, h, w, c]" as a ShapeError unless the rank is 4.
void require_images(const Shape& input, const char* model);

}  // namespace tessera::models
