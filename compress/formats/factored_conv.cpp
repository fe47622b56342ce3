#include "compress/formats/factored_conv.h"

#include "core/support/error.h"
#include "core/support/text.h"

namespace tessera {

std::span<const std::string_view> LargerConvFormat::kinds() const {
  static constexpr std::string_view kKinds[]{"conv2d"};
  return kKinds;
}

std::string LargerConvFormat::why_not(const DenseLayer& layer) const {
  if (!is_form_of(*this, *layer.module)) return str("is ", with_article(layer.module->kind()), "; ", name(), " factors conv2d");
  if (layer.groups != 1) return str("has ", layer.groups, " groups; ", name(), " needs 1");
  if (layer.taps() == 1) return str("has a 1x1 kernel; ", name(), " needs a larger one");
  return "";
}

const Conv2dConfig& conv_of(const DenseLayer& dense) { return dynamic_cast<const Conv2d&>(*dense.module).options(); }

}  // namespace tessera
