#include "compress/formats/format.h"

#include <algorithm>

#include "core/support/error.h"
#include "layers/conv2d.h"
#include "layers/embedding.h"
#include "layers/linear.h"
#include "layers/tied_linear.h"

namespace tessera {
namespace {

// The axes other than batch and channels.
Extent positions(const Shape& shape) {
  if (shape.rank() == 4) return {shape[1], shape[2]};
  if (shape.rank() < 2) return {1, 1};  // an input of whole numbers
  return {shape.erase(shape.rank() - 1).erase(0).numel(), 1};
}

}  // namespace

std::optional<DenseLayer> dense_layer(const Module& module, const LayerCost& row) {
  DenseLayer layer{.module = &module, .path = module.path(), .input = positions(row.input), .output = positions(row.output)};
  if (const auto* conv = dynamic_cast<const Conv2d*>(&module)) {
    const Conv2dConfig& options = conv->options();
    layer.out = options.out;
    layer.in = options.in;
    layer.kernel = options.kernel;
    layer.groups = options.groups;
    layer.bias = options.bias;
  } else if (const auto* linear = dynamic_cast<const Linear*>(&module)) {
    layer.out = linear->options().out;
    layer.in = linear->options().in;
    layer.bias = linear->options().bias;
  } else if (const auto* table = dynamic_cast<const Embedding*>(&module); table != nullptr && why_shared(module).empty()) {
    layer.out = table->weight().value().dim(0);
    layer.in = table->weight().value().dim(1);
    layer.looked_up = true;
    layer.input = layer.output;
  } else {
    return std::nullopt;
  }
  return layer;
}

void ProjectOptions::fields(Fields& f) {
  f.add("iterations", iterations,
        {.help = "most sweeps over the factors; 0 = the start alone",
         .range = non_negative,
         .example = "10",
         .observable = "bytes"});
  f.add("tolerance", tolerance,
        {.help = "stop when a sweep lowers the relative error by less",
         .range = non_negative,
         .example = "0.01",
         .observable = "bytes"});
}

void ModesConfig::fields(Fields& f) {
  f.add("count", count,
        {.help = "modes that the channels of each side are split into, as equal as their divisors allow",
         .range = {.min = 2, .max = 4},
         .example = "3",
         .observable = "report"});
  f.add("out", out,
        {.help = "sizes that the output channels are split into; the input's are as many",
         .range = at_least(2),
         .example = "[4, 8, 4]",
         .observable = "report"});
  f.add("in", in,
        {.help = "sizes that the input channels are split into; the output's are as many",
         .range = at_least(2),
         .example = "[4, 8, 4]",
         .observable = "report"});
  for (const auto& [key, sizes] : {std::pair("out", &out), {"in", &in}}) {
    f.require(sizes->empty() || (sizes->size() >= 2 && sizes->size() <= 4), key, "takes two to four sizes");
  }
  f.require(out.empty() || in.empty() || out.size() == in.size(), "in", "has another number of sizes than out");
  f.require((out.empty() && in.empty()) || !count, "count", "is the number of sizes; leave it out");
}

const Tensor& DenseLayer::weight() const { return module->parameter("weight").value(); }

std::int64_t rank_of(const Ranks& ranks, std::string_view name) {
  const auto found = std::ranges::find(ranks, name, &Rank::name);
  TESSERA_CHECK(found != ranks.end(), InternalError, "ranks ", to_string(ranks), ": no rank '", name, "'");
  return found->value;
}

std::string kinds_text(const Format& format) {
  const std::span<const std::string_view> kinds = format.kinds();
  std::string text;
  for (std::size_t i = 0; i < kinds.size(); ++i) text += str(i == 0 ? "" : i + 1 == kinds.size() ? " or " : ", ", kinds[i]);
  return text;
}

bool is_form_of(const Format& format, const Module& module) {
  return std::ranges::find(format.kinds(), module.kind()) != format.kinds().end();
}

}  // namespace tessera
