// A network as a graph of ONNX's operators, layer by layer. The table of kinds, onnx_forms(), is where a new layer's form stands.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "core/nn/module.h"
#include "core/ops/conv2d.h"
#include "layers/conv2d.h"
#include "layers/linear.h"
#include "train/onnx/graph.h"

namespace tessera {

// How an initialiser lies beside our parameter.
enum class OnnxAxes {
  same,
  convolution,  // [out, kh, kw, in] as [out, in, kh, kw]
  transposed,  // [out, in] as [in, out]
};

struct OnnxMask {
  std::int64_t elements = 0, kept = 0;
  Tensor bits;  // packed_bits() of the initialiser's elements (core/mask_bits.h)
};

inline constexpr const char* kOnnxKeyMask = "key_mask";

class OnnxEmitter {
 public:
  // `masks`: by path, the masks that the network's parameters had before its norms were folded.
  explicit OnnxEmitter(std::map<std::string, Tensor> masks = {}) : masks_(std::move(masks)) {}

  OnnxBuilder graph;

  // The network's input, for one sample. Token sequences may have any length, unless the network takes only one.
  OnnxValue input(Module& network, const Shape& sample);
  bool reads_tokens() const noexcept { return reads_tokens_; }
  bool any_length() const noexcept { return any_length_; }
  // How many positions x [n, t, ...] has: i64, a scalar. Where any length is allowed, it comes from the graph's input.
  OnnxValue length_of(const OnnxValue& x);
  // y, which has a row for each sample and position, reshaped to `shape`.
  OnnxValue by_position(const OnnxValue& y, const Shape& shape);
  // What `make` computes from the input's sizes alone, computed once for all calls with the same name.
  OnnxValue once(const std::string& name, const std::function<OnnxValue()>& make);

  // What the module makes of x in evaluation. Throws ConfigError naming the module where its kind has no form.
  OnnxValue emit(const Module& module, const OnnxValue& x);
  OnnxValue emit_child(const Module& parent, std::string_view name, const OnnxValue& x) { return emit(parent.child(name), x); }

  // An initialiser of a parameter, by its path. The mask of `parameter`, or the one that it had before folding, is noted with
  // it.
  OnnxValue parameter(const Module& owner, const Parameter& parameter, OnnxAxes axes = OnnxAxes::same) {
    return parameter_at(join_path(owner.path(), parameter.name()), parameter, axes);
  }
  OnnxValue parameter_at(const std::string& path, const Parameter& parameter, OnnxAxes axes = OnnxAxes::same);
  const std::map<std::string, OnnxMask>& masks_noted() const noexcept { return noted_; }

  // Filters [out, in / groups, kh, kw]. The bias may be null.
  OnnxValue convolution(const OnnxValue& x, const OnnxValue& filters, const Parameter* bias, const std::string& bias_path,
                        const Conv2dOptions& options);
  // Dense layers, whose parameters stand below `path`.
  OnnxValue conv2d(const std::string& path, const Conv2d& layer, const OnnxValue& x);
  OnnxValue linear(const std::string& path, const Linear& layer, const OnnxValue& x);
  OnnxValue add_bias(const OnnxValue& y, const Module& owner, const char* name = "bias");  // where the module has one

 private:
  OnnxValue sizes_of_tokens();  // batch and length, i64 [2]

  bool reads_tokens_ = false;
  bool any_length_ = false;
  OnnxValue tokens_;
  std::map<std::string, OnnxValue> made_;  // by once()
  std::map<std::string, Tensor> masks_;
  std::map<std::string, OnnxMask> noted_;
};

using OnnxForm = std::function<OnnxValue(OnnxEmitter&, const Module&, const OnnxValue&)>;
using OnnxForms = std::map<std::string_view, OnnxForm>;

// Kind of a layer -> its form.
const OnnxForms& onnx_forms();

// A form of modules of class M.
template <class M, class Body>
OnnxForm form_of(Body body) {
  return [body](OnnxEmitter& emitter, const Module& module, const OnnxValue& x) {
    return body(emitter, dynamic_cast<const M&>(module), x);
  };
}

void add_convolution_forms(OnnxForms& forms);
void add_simple_forms(OnnxForms& forms);  // linear layers, activations, sequences, tables
void add_train_forms(OnnxForms& forms);
void add_transformer_forms(OnnxForms& forms);

bool has_parameter(const Module& module, std::string_view name);

}  // namespace tessera
