#include "core/support/error.h"
#include "layers/activation.h"
#include "layers/models/chain.h"
#include "layers/models/networks.h"
#include "layers/pool2d.h"
#include "layers/residual_block.h"

namespace tessera::models {

namespace {

using MakeBlock = std::unique_ptr<Module> (*)(const ResidualBlockConfig&);

struct Stage {
  std::int64_t blocks;
  std::int64_t out;
  std::int64_t stride;  // of the stage's first block
};

// `shortcut` is used where an identity does not fit.
std::unique_ptr<Module> make_stage(MakeBlock make, std::int64_t in, const Stage& stage, const std::string& shortcut) {
  auto blocks = std::make_unique<Sequential>();
  for (std::int64_t i = 0; i < stage.blocks; ++i) {
    ResidualBlockConfig block{.in = i == 0 ? in : stage.out, .out = stage.out, .stride = i == 0 ? stage.stride : 1};
    if (block.in != block.out || block.stride != 1) block.shortcut = shortcut;
    blocks->add_child(str(i), make(block));
  }
  return blocks;
}

std::unique_ptr<Module> imagenet_resnet(const Shape& input, std::int64_t classes, MakeBlock make,
                                        const std::vector<std::int64_t>& blocks, std::int64_t expansion) {
  Chain chain(input);
  chain.conv("conv1", {.out = 64, .kernel = {7, 7}, .stride = {2, 2}, .padding = {3, 3}, .bias = false});
  chain.batch_norm("bn1").add<Relu>("relu");
  chain.add<MaxPool2d>("maxpool", {.kernel = {3, 3}, .stride = Extent{2, 2}, .padding = {1, 1}});
  std::int64_t width = 64;
  for (std::size_t i = 0; i < blocks.size(); ++i, width *= 2) {
    const Stage stage{.blocks = blocks[i], .out = width * expansion, .stride = i == 0 ? 1 : 2};
    chain.add(str("layer", i + 1), make_stage(make, chain.features(), stage, "projection"));
  }
  return chain.add<GlobalAvgPool>("avgpool").linear("fc", classes).finish();
}

}  // namespace

void CifarResNet::fields(Fields& f) {
  f.add("shortcut", shortcut,
        {.help = "option_a has no parameters, projection is a 1x1 convolution",
         .choices = {"", "option_a", "projection"},
         .observable = "plan"});
  width_field(f, width);
}

std::unique_ptr<Module> CifarResNet::build(const Shape& input, std::int64_t classes) const {
  require_images(input, "resnet");
  const std::int64_t blocks = (std::stoll(name.substr(std::string_view("resnet").size())) - 2) / 6;
  Chain chain(input);
  chain.conv("conv1", {.out = scaled_channels(width, 16), .kernel = {3, 3}, .padding = {1, 1}, .bias = false});
  chain.batch_norm("bn1").add<Relu>("relu");
  for (const std::int64_t i : {1, 2, 3}) {
    const Stage stage{.blocks = blocks, .out = scaled_channels(width, 8 << i), .stride = i == 1 ? 1 : 2};
    chain.add(str("layer", i), make_stage(&make_basic_block, chain.features(), stage, shortcut.empty() ? "option_a" : shortcut));
  }
  return chain.add<GlobalAvgPool>("avgpool").linear("fc", classes).finish();
}

std::unique_ptr<Module> ImageNetResNet::build(const Shape& input, std::int64_t classes) const {
  require_images(input, name.c_str());
  if (name == "resnet18") return imagenet_resnet(input, classes, &make_basic_block, {2, 2, 2, 2}, 1);
  return imagenet_resnet(input, classes, &make_bottleneck, {3, 4, 6, 3}, Bottleneck::kExpansion);
}

}  // namespace tessera::models
