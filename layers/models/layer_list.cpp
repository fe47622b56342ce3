#include <algorithm>

#include "core/error.h"
#include "layers/builtin.h"
#include "layers/models/chain.h"
#include "layers/models/networks.h"

namespace tessera::models {

namespace {

// One item of the list: `relu`, or `{conv2d: {out: 32}}`.
struct Item {
  std::string kind;
  std::string name;
  Value config = Value::map();
};

std::string at(const Value& value) {
  const std::string mark = to_string(value.mark());
  return mark.empty() ? "layers: " : mark + ": layers: ";
}

Item parse_item(const Value& value, std::size_t index) {
  Item item{.kind = {}, .name = str(index)};
  if (value.is_string()) {
    item.kind = value.as_string();
    return item;
  }
  TESSERA_CHECK(value.is_map() && value.as_map().size() == 1, ConfigError, at(value), "item ", index, " is ", value.kind_name(),
                "; needs a layer's kind, or one kind with its settings, as in {conv2d: {out: 32}}");
  item.kind = value.as_map().front().key;
  if (!value.as_map().front().value.is_null()) item.config = value.as_map().front().value;
  if (const Value* name = item.config.is_map() ? item.config.find("name") : nullptr) {
    item.name = name->as_string();
    item.config.erase("name");
  }
  return item;
}

// Sizes that only the running shape knows.
void infer_input(Item& item, const Registry<Module>& layers, std::int64_t features) {
  if (!item.config.is_map()) return;
  for (const SchemaEntry& entry : layers.schema_of(item.kind)) {
    if ((entry.path == "in" || entry.path == "channels") && item.config.find(entry.path) == nullptr) {
      item.config.set(entry.path, features);
    }
  }
}

bool is_composite(std::string_view kind) {
  constexpr std::string_view kComposite[] = {"sequential", "residual", "basic_block", "bottleneck"};
  return std::find(std::begin(kComposite), std::end(kComposite), kind) != std::end(kComposite);
}

}  // namespace

std::unique_ptr<Module> layer_list(const ModelConfig& config, const Shape& input) {
  const Registry<Module> layers = builtin_layers();
  const Value::List& list = config.layers.as_list();
  TESSERA_CHECK(!list.empty(), ConfigError, at(config.layers), "the list is empty");
  Chain chain(input);
  std::vector<ConfigProblem> problems;
  for (std::size_t i = 0; i < list.size(); ++i) {
    Item item = parse_item(list[i], i);
    TESSERA_CHECK(!is_composite(item.kind), ConfigError, at(list[i]), "item ", i, " is a ", item.kind,
                  ", which is made of other layers; name layers without children");
    infer_input(item, layers, chain.features());
    layers.check(item.kind, item.config, str("layers[", i, "].", item.kind), problems);
    if (!problems.empty()) throw_config_error(problems);
    chain.add(item.name, layers.build(item.kind, item.config));
  }
  return chain.finish();
}

}  // namespace tessera::models
