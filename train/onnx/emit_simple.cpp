// Linear layers, activations, sequences and tables.
#include <numbers>

#include "core/config/read.h"
#include "core/ops/gelu_math.h"
#include "layers/activation.h"
#include "layers/embedding.h"
#include "layers/sequential.h"
#include "layers/sparse_linear.h"
#include "layers/svd_linear.h"
#include "layers/tied_linear.h"
#include "train/onnx/emitter.h"

namespace tessera {
namespace {

OnnxValue emit_svd_linear(OnnxEmitter& e, const SvdLinear& layer, const OnnxValue& x) {
  const auto factor = [&](const char* name) { return e.parameter(layer, layer.parameter(name), OnnxAxes::transposed); };
  const OnnxValue narrow = e.graph.matmul(e.graph.channels_last(x), factor("in_factor"));
  return e.add_bias(e.graph.matmul(narrow, factor("out_factor")), layer);
}

OnnxValue emit_sparse_linear(OnnxEmitter& e, const SparseLinear& layer, const OnnxValue& x) {
  const std::unique_ptr<Module> dense = layer.to_dense();
  return e.linear(layer.path(), dynamic_cast<const Linear&>(*dense), x);
}

// The table is the embedding's initialiser, used twice. It is transposed for the matrix product.
OnnxValue emit_tied_linear(OnnxEmitter& e, const TiedLinear& layer, const OnnxValue& x) {
  const OnnxValue table = e.parameter(layer.table(), layer.table().parameter("weight"));
  return e.add_bias(e.graph.matmul(e.graph.channels_last(x), e.graph.permute(table, {1, 0})), layer);
}

OnnxValue emit_embedding(OnnxEmitter& e, const Embedding& layer, const OnnxValue& x) {
  const OnnxValue table = e.parameter(layer, layer.weight());
  return e.graph.gather(table, x, 0, x.shape.append(table.shape[1]));
}

OnnxValue emit_flatten(OnnxEmitter& e, const Module&, const OnnxValue& x) {
  return e.graph.reshape(e.graph.channels_last(x), {x.shape[0], x.shape.numel() / x.shape[0]});
}

OnnxValue emit_sequential(OnnxEmitter& e, const Sequential& chain, const OnnxValue& x) {
  OnnxValue y = x;
  for (const Module::Child& child : chain.children()) y = e.emit(*child.module, y);
  return y;
}

OnnxValue silu(OnnxBuilder& graph, const OnnxValue& x) { return graph.binary("Mul", x, graph.unary("Sigmoid", x)); }

OnnxValue emit_swiglu(OnnxEmitter& e, const Module&, const OnnxValue& x) {
  const OnnxValue read = e.graph.channels_last(x);
  const std::int64_t half = read.shape.dim(-1) / 2;
  const std::vector<OnnxValue> halves = e.graph.split(read, read.shape.rank() - 1, {half, half});
  return e.graph.binary("Mul", silu(e.graph, halves[0]), halves[1]);
}

// x / 2 (1 + erf(x / sqrt 2)). The tanh form has tanh(sqrt(2 / pi) (x + 0.044715 x^3)) in place of erf.
OnnxValue emit_gelu(OnnxEmitter& e, const Gelu& layer, const OnnxValue& given) {
  OnnxBuilder& g = e.graph;
  const OnnxValue x = g.channels_last(given);
  OnnxValue bent;
  if (read<GeluConfig>(layer.config()).form == "tanh") {
    const OnnxValue cube = g.binary("Mul", g.binary("Mul", x, x), x);
    const OnnxValue sum = g.binary("Add", x, g.binary("Mul", cube, g.number(kGeluCubic)));
    bent = g.unary("Tanh", g.binary("Mul", sum, g.number(kSqrtTwoOverPi)));
  } else {
    bent = g.unary("Erf", g.binary("Mul", x, g.number(1 / std::numbers::sqrt2)));
  }
  return g.binary("Mul", g.binary("Mul", x, g.number(0.5)), g.binary("Add", bent, g.number(1)));
}

OnnxForm unary(const std::string& op) {
  return [op](OnnxEmitter& e, const Module&, const OnnxValue& x) { return e.graph.unary(op, x); };
}

}  // namespace

void add_simple_forms(OnnxForms& forms) {
  forms["linear"] = form_of<Linear>([](OnnxEmitter& e, const Linear& m, const OnnxValue& x) { return e.linear(m.path(), m, x); });
  forms["svd_linear"] = form_of<SvdLinear>(emit_svd_linear);
  forms["sparse_linear"] = form_of<SparseLinear>(emit_sparse_linear);
  forms["tied_linear"] = form_of<TiedLinear>(emit_tied_linear);
  forms["embedding"] = form_of<Embedding>(emit_embedding);
  forms["flatten"] = emit_flatten;
  forms["sequential"] = form_of<Sequential>(emit_sequential);
  // These layers do nothing in evaluation.
  for (const char* const kind : {"dropout", "identity"}) {
    forms[kind] = [](OnnxEmitter&, const Module&, const OnnxValue& x) { return x; };
  }
  forms["relu"] = unary("Relu");
  forms["sigmoid"] = unary("Sigmoid");
  forms["tanh"] = unary("Tanh");
  forms["silu"] = [](OnnxEmitter& e, const Module&, const OnnxValue& x) { return silu(e.graph, x); };
  forms["swiglu"] = emit_swiglu;
  forms["gelu"] = form_of<Gelu>(emit_gelu);
}

}  // namespace tessera
