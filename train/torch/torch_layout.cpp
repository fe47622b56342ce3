#include "train/torch/torch_layout.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "core/support/error.h"
#include "layers/compressed.h"

namespace tessera {
namespace {

constexpr std::array<std::string_view, 7> kElementwise{"dropout", "gelu", "identity", "relu", "sigmoid", "silu", "tanh"};
constexpr std::array<std::string_view, 3> kPools{"avg_pool2d", "global_avg_pool", "max_pool2d"};
constexpr std::array<std::string_view, 3> kBlocks{"basic_block", "bottleneck", "residual"};

template <std::size_t n>
bool contains(const std::array<std::string_view, n>& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

[[noreturn]] void refuse(const Module& module, std::string_view why) {
  throw ConfigError(str("layer '", module.path(), "' (", module.kind(), ") has no form in PyTorch's layout: ", why));
}

// Follows the shape through the tree, because a flatten reorders features depending on the shape.
class Walker {
 public:
  void visit(const Module& module, const Shape& input) {
    const std::string_view kind = module.kind();
    if (kind == "sequential") return visit_chain(module, input);
    if (contains(kBlocks, kind)) return visit_block(module, input);
    if (const CompressedLayer* compressed = as_compressed(module)) return add_compressed(module, *compressed, input);
    if (kind == "conv2d") return add_convolution(module);
    if (kind == "linear") return add_linear(module, input);
    if (kind == "embedding") return add(module, "weight", TorchAxes::same);
    if (kind == "batch_norm" || kind == "layer_norm") return add_norm(module, input);
    if (kind == "flatten") return visit_flatten(module, input);
    if (!contains(kElementwise, kind) && !contains(kPools, kind)) refuse(module, "its kind is not supported");
  }

  std::vector<TorchTensor> finish(const Module& root) {
    if (channels_ > 0) refuse(root, "it ends in a flattened image, whose features PyTorch has in another order");
    return std::move(tensors_);
  }

 private:
  void visit_chain(const Module& module, const Shape& input) {
    Shape shape = input;
    for (const Module::Child& child : module.children()) {
      visit(*child.module, shape);
      if (depth_ == 0) shape = child.module->output_shape(shape);  // inside a block the shapes are not known
    }
  }

  // A block's children do not change the order of features, so each child is visited with the block's own input.
  void visit_block(const Module& module, const Shape& input) {
    if (channels_ > 0) refuse(module, "a block follows a flattened image");
    ++depth_;
    for (const Module::Child& child : module.children()) visit(*child.module, input);
    --depth_;
  }

  void visit_flatten(const Module& module, const Shape& input) {
    if (depth_ > 0) refuse(module, "a flatten stands inside a block");
    if (input.rank() == 4 && input[1] * input[2] > 1 && input[3] > 1) channels_ = input[3];
  }

  void add_convolution(const Module& module) {
    for (const std::string& name : tensor_names(module)) {
      const bool bias = name == "bias";
      add(module, name, bias ? TorchAxes::same : TorchAxes::convolution);
    }
  }

  // The layer names its parts itself.
  void add_compressed(const Module& module, const CompressedLayer& compressed, const Shape& input) {
    const std::vector<TorchPart> parts = compressed.torch_tensors();
    if (parts.empty()) refuse(module, "PyTorch has the dense layer alone");
    for (const TorchPart& part : parts) {
      if (part.reads_features || part.fixes_features) refuse_image(module, input);
      if (part.fixes_features && channels_ > 0) {
        refuse(module, "it follows a flattened image, whose features PyTorch orders otherwise");
      }
      const bool flattened = part.reads_features && channels_ > 0;
      add(module, part.tensor, part.name,
          flattened          ? TorchAxes::flattened
          : part.convolution ? TorchAxes::convolution
                             : TorchAxes::same);
      if (part.reads_features) channels_ = 0;
    }
  }

  static void refuse_image(const Module& module, const Shape& input) {
    if (input.rank() == 4) refuse(module, "it acts on the channels of an image; use a 1x1 convolution");
  }

  void add_linear(const Module& module, const Shape& input) {
    refuse_image(module, input);
    for (const std::string& name : tensor_names(module)) {
      add(module, name, name == "weight" && channels_ > 0 ? TorchAxes::flattened : TorchAxes::same);
    }
    channels_ = 0;
  }

  void add_norm(const Module& module, const Shape& input) {
    if (module.kind() == "layer_norm" && input.rank() == 4) refuse(module, "it normalises the channels of an image");
    for (const std::string& name : tensor_names(module)) {
      add(module, name, channels_ > 0 ? TorchAxes::flattened : TorchAxes::same);
    }
  }

  void add(const Module& module, const std::string& name, TorchAxes axes) { add(module, name, name, axes); }
  void add(const Module& module, const std::string& name, const std::string& torch, TorchAxes axes) {
    tensors_.push_back(
        {join_path(module.path(), name), join_path(module.path(), torch), axes, axes == TorchAxes::flattened ? channels_ : 1});
  }

  static std::vector<std::string> tensor_names(const Module& module) {
    std::vector<std::string> names;
    for (const auto& parameter : module.parameters()) names.push_back(parameter->name());
    for (const auto& buffer : module.buffers()) names.push_back(buffer->name);
    return names;
  }

  std::vector<TorchTensor> tensors_;
  std::int64_t channels_ = 0;  // channels of the flattened image; 0 if the features are not a flattened image
  int depth_ = 0;  // number of blocks around the current module
};

// Splits the last axis into [outer, inner] and swaps these two axes.
Tensor swap_last(const Tensor& tensor, std::int64_t outer, std::int64_t inner) {
  const Shape rows = tensor.shape().erase(tensor.rank() - 1);
  const Tensor split = tensor.reshape({rows.numel(), outer, inner});
  return split.permute({0, 2, 1}).contiguous().reshape(tensor.shape());
}

std::int64_t pixels_of(const Shape& shape, const TorchTensor& layout) {
  const bool fits = shape.rank() >= 1 && shape.dim(-1) % layout.channels == 0;
  TESSERA_CHECK(fits, ShapeError, layout.name, " is ", shape, "; the last axis must be a multiple of the ", layout.channels,
                " channels of the flattened image");
  return shape.dim(-1) / layout.channels;
}

void check_axes(const Shape& shape, const TorchTensor& layout) {
  const bool convolution = layout.axes == TorchAxes::convolution;
  TESSERA_CHECK(!convolution || shape.rank() == 4, ShapeError, layout.name, " is ", shape, "; a convolution's weight has 4 axes");
  TESSERA_CHECK(layout.axes != TorchAxes::transposed || shape.rank() == 2, ShapeError, layout.name, " is ", shape,
                "; a matrix that is transposed has 2 axes");
  TESSERA_CHECK(layout.axes != TorchAxes::three || shape.rank() <= 3, ShapeError, layout.name, " is ", shape,
                "; it must have 3 axes at most");
}

Shape rows_of(Shape shape, const TorchTensor& layout) {
  if (layout.rows == 0) return shape;
  TESSERA_CHECK(shape.rank() >= 1 && layout.first + layout.rows <= shape[0], ShapeError, layout.name, " is rows ", layout.first,
                " to ", layout.first + layout.rows, " of ", shape, "; the first axis must have them");
  shape.set(0, layout.rows);
  return shape;
}

Shape with_three_axes(const Shape& shape) {
  Shape three{1, 1, 1};
  for (int axis = 1; axis <= shape.rank(); ++axis) three.set(3 - axis, shape.dim(-axis));
  return three;
}

}  // namespace

std::vector<TorchTensor> torch_tensors(const Module& root, const Shape& input) {
  Walker walker;
  walker.visit(root, input);
  return walker.finish(root);
}

Tensor to_torch(const Tensor& ours, const TorchTensor& layout) {
  const Shape shape = rows_of(ours.shape(), layout);
  check_axes(shape, layout);
  const Tensor part = layout.rows == 0 ? ours : ours.slice(0, layout.first, layout.first + layout.rows);
  switch (layout.axes) {
    case TorchAxes::same: return part;
    case TorchAxes::convolution: return part.permute({0, 3, 1, 2});
    case TorchAxes::flattened: return swap_last(part, pixels_of(shape, layout), layout.channels);
    case TorchAxes::transposed: return part.permute({1, 0});
    case TorchAxes::three: return part.reshape(with_three_axes(shape));
  }
  throw InternalError("to_torch: unknown axes");
}

Tensor from_torch(const Tensor& torch, const TorchTensor& layout) {
  check_axes(torch.shape(), layout);
  switch (layout.axes) {
    case TorchAxes::same:
    case TorchAxes::three: return torch;
    case TorchAxes::convolution: return torch.permute({0, 2, 3, 1});
    case TorchAxes::flattened: return swap_last(torch, layout.channels, pixels_of(torch.shape(), layout));
    case TorchAxes::transposed: return torch.permute({1, 0});
  }
  throw InternalError("from_torch: unknown axes");
}

Shape torch_shape(const Shape& ours, const TorchTensor& layout) {
  const Shape shape = rows_of(ours, layout);
  check_axes(shape, layout);
  switch (layout.axes) {
    case TorchAxes::same:
    case TorchAxes::flattened: return shape;
    case TorchAxes::convolution: return {shape[0], shape[3], shape[1], shape[2]};
    case TorchAxes::transposed: return {shape[1], shape[0]};
    case TorchAxes::three: return with_three_axes(shape);
  }
  throw InternalError("torch_shape: unknown axes");
}

}  // namespace tessera
