// Classifiers of images that see them as sequences of patches (Dosovitskiy et al., 2021, "An image is worth 16x16 words").
#pragma once

#include <array>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "core/config/fields.h"
#include "core/nn/module.h"
#include "layers/sparse_attention_config.h"

namespace tessera::models {

// Images [n, h, w, c], whose sides the patch divides -> [n, classes]. Children: patches, class_token (for that pool), positions,
// dropout (where there is one), blocks, norm, pool, head. The defaults, and vit_ti16, are ViT-Ti/16 (Touvron et al., 2021, table
// 1): 5,717,416 parameters with images of 224 x 224 and 1000 classes.
// Initial values are those of DeiT's and timm's code (_init_weights, trunc_normal_ of deviation 0.02, which cuts at 100
// deviations and so cuts nothing), for the patches too, as in Hugging Face's ViTPreTrainedModel: weights, positions and class
// token N(0, 0.02^2), biases 0.
struct Vit {
  static constexpr std::array<std::string_view, 2> kNames{"vit", "vit_ti16"};
  std::string name = "vit";
  std::int64_t layers = 12;
  std::int64_t width = 192;
  std::int64_t heads = 3;
  std::optional<std::int64_t> hidden = {};  // 4 width without it
  std::int64_t patch = 16;  // pixels on a side
  std::string pool = "class_token";  // or mean
  std::optional<SparseAttentionKeys> sparse = {};  // of the patches in their order, the class token first
  double eps = 1e-6;
  double dropout = 0;
  bool recompute = false;
  void fields(Fields& f);  // of vit_ti16 sizes are the defaults, and others are refused
  std::optional<Shape> usual_input() const { return Shape{1, 224, 224, 3}; }
  friend bool operator==(const Vit&, const Vit&) = default;
  std::unique_ptr<Module> build(const Shape& input, std::int64_t classes) const;  // throws ShapeError unless input is such images
};

}  // namespace tessera::models
