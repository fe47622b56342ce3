#include "layers/tied_linear.h"

#include <algorithm>

#include "core/config/read.h"
#include "core/ops/dense_operands.h"
#include "core/ops/linear.h"
#include "core/support/counting.h"
#include "layers/embedding.h"
#include "layers/init.h"

namespace tessera {
namespace {

const Module* child_at(const Module& around, std::string_view path) {
  const Module* at = &around;
  while (at != nullptr && !path.empty()) {
    const std::size_t dot = std::min(path.find('.'), path.size());
    const std::string_view name = path.substr(0, dot);
    at = at->has_child(name) ? &at->child(name) : nullptr;
    path.remove_prefix(std::min(dot + 1, path.size()));
  }
  return at;
}

// The linear layer inside `around` that reads this table. Null if there is none.
const TiedLinear* reader_of(const Module& table, const Module& around) {
  if (const auto* const tied = dynamic_cast<const TiedLinear*>(&around)) return &tied->table() == &table ? tied : nullptr;
  for (const Module::Child& child : around.children()) {
    if (const TiedLinear* const found = reader_of(table, *child.module)) return found;
  }
  return nullptr;
}

}  // namespace

void TiedLinearConfig::fields(Fields& f) {
  f.add("in", in, {.help = "input features", .range = at_least(1), .example = "768", .observable = "plan"});
  f.add("out", out, {.help = "output features", .range = at_least(1), .example = "50257", .observable = "plan"});
  f.add("bias", bias, {.help = "adds a trained offset", .observable = "plan"});
  f.add("table", table, {.help = "path of the embedding whose table it is", .example = "words", .observable = "plan"});
}

TiedLinear::TiedLinear(const TiedLinearConfig& config)
    : config_(config), bias_(config.bias ? &add_parameter("bias", Tensor::zeros({config.out}), ParameterRole::bias) : nullptr) {}

Value TiedLinear::config() const { return write(config_); }

const Module& TiedLinear::table() const {
  for (const Module* around = parent(); around != nullptr; around = around->parent()) {
    const Module* const found = child_at(*around, config_.table);
    const auto* const embedding = dynamic_cast<const Embedding*>(found);
    if (found == nullptr) continue;
    TESSERA_CHECK(embedding != nullptr && embedding->weight().value().shape() == Shape({config_.out, config_.in}), ConfigError,
                  "tied_linear '", path(), "': '", found->path(), "' is ", found->kind(), ' ', to_json(found->config()),
                  "; needs an embedding of ", config_.out, " x ", config_.in);
    return *found;
  }
  throw ConfigError(str("tied_linear '", path(), "': there is no module '", config_.table, "' whose table it could read"));
}

Var TiedLinear::forward(const Var& x, const Context&) {
  return linear(x, table().parameter("weight").var(), bias_ != nullptr ? bias_->var() : Var());
}

Shape TiedLinear::output_shape(const Shape& input, Trace* trace) const {
  TESSERA_CHECK(input.rank() >= 2 && input.dim(-1) == config_.in, ShapeError, "tied_linear '", path(), "': input is ", input,
                "; needs [..., ", config_.in, "]");
  Shape output = input;
  output.set(input.rank() - 1, config_.out);
  trace_leaf(trace, input, output, product_of({checked_size("tied_linear", output).erase(0).numel(), config_.in}));
  return output;
}

void TiedLinear::reset_parameters(std::uint64_t) {
  if (bias_ != nullptr) init_constant(*bias_, 0);
}

std::string why_shared(const Module& module) {
  if (const auto* const tied = dynamic_cast<const TiedLinear*>(&module)) {
    return str("shares its table with '", tied->table().path(), '\'');
  }
  if (dynamic_cast<const Embedding*>(&module) == nullptr) return "";
  const Module* root = &module;
  while (root->parent() != nullptr) root = root->parent();
  const TiedLinear* const reader = reader_of(module, *root);
  return reader == nullptr ? "" : str("shares its table with '", reader->path(), '\'');
}

std::string shared_hint(const Module& module) {
  const std::string why = why_shared(module);
  return why.empty() ? "" : str("; '", module.path(), "' ", why, ", which stays as it is");
}

}  // namespace tessera
