#include "train/onnx/network.h"

#include <algorithm>
#include <cstddef>
#include <memory>
#include <vector>

#include "core/config/value.h"
#include "core/support/error.h"
#include "layers/builtin.h"
#include "layers/fold.h"
#include "train/onnx/emitter.h"

namespace tessera {
namespace {

Shape one_sample(const Shape& input) {
  TESSERA_CHECK(input.rank() >= 2, ConfigError, "export: the network's input is ", input, "; needs [n, ...]");
  Shape one = input;
  one.set(0, 1);
  return one;
}

std::string sparsity_of(const OnnxEmitter& emitter) {
  Value masks = Value::map();
  for (const auto& [name, mask] : emitter.masks_noted()) {
    Value entry = Value::map();
    entry.set("elements", mask.elements);
    entry.set("kept", mask.kept);
    const auto* const bytes = reinterpret_cast<const char*>(mask.bits.data<std::uint8_t>());
    entry.set("mask", base64({bytes, static_cast<std::size_t>(mask.bits.numel())}));
    masks.set(name, std::move(entry));
  }
  return to_json(masks);
}

}  // namespace

std::string base64(std::string_view bytes) {
  constexpr std::string_view kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    std::uint32_t group = 0;
    const std::size_t count = std::min<std::size_t>(3, bytes.size() - i);
    for (std::size_t j = 0; j < 3; ++j) group = group << 8 | (j < count ? static_cast<unsigned char>(bytes[i + j]) : 0u);
    for (std::size_t j = 0; j < 4; ++j) text += j <= count ? kDigits[group >> (18 - 6 * j) & 63] : '=';
  }
  return text;
}

OnnxGraph onnx_graph(Module& network, const Shape& input, const OnnxOptions& options) {
  std::map<std::string, Tensor> masks;
  for (const NamedParameter& entry : named_parameters(network)) {
    if (entry.parameter->mask().defined()) masks[entry.path] = entry.parameter->mask();
  }
  std::unique_ptr<Module> folded_copy;
  if (!options.keep_batch_norm) folded_copy = folded(network, builtin_layers(), Folds::keeping_compressed);
  Module& exported = folded_copy ? *folded_copy : network;
  OnnxEmitter emitter(std::move(masks));
  const OnnxValue scores = emitter.emit(exported, emitter.input(exported, one_sample(input)));
  std::vector<OnnxSize> told{kOnnxBatch};
  if (emitter.any_length() && scores.shape.rank() == 3) told.emplace_back(kOnnxLength);
  OnnxGraph graph = emitter.graph.finish(scores, kOnnxScores, told);
  if (!emitter.masks_noted().empty()) graph.metadata[kOnnxSparsity] = sparsity_of(emitter);
  return graph;
}

}  // namespace tessera
