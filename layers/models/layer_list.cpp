#include <algorithm>

#include "core/support/error.h"
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

std::string item_path(std::string_view path, std::size_t index) { return str(path, '[', index, ']'); }

// Parses an item of a list that check_layer_list has accepted.
Item parse_item(const Value& value, std::size_t index) {
  Item item{.kind = {}, .name = str(index)};
  if (value.is_string()) {
    item.kind = value.as_string();
    return item;
  }
  item.kind = value.as_map().front().key;
  if (!value.as_map().front().value.is_null()) item.config = value.as_map().front().value;
  if (const Value* name = item.config.is_map() ? item.config.find("name") : nullptr) {
    if (name->is_string()) item.name = name->as_string();
    item.config.erase("name");
  }
  return item;
}

// Keys of sizes that the item leaves out. They are inferred from the shape of the layer's input.
std::vector<std::string> sizes_to_infer(const Item& item, const Registry<Module>& layers) {
  std::vector<std::string> keys;
  if (!item.config.is_map()) return keys;
  for (const SchemaEntry& entry : layers.schema_of(item.kind)) {
    if ((entry.path == "in" || entry.path == "channels") && item.config.find(entry.path) == nullptr) keys.push_back(entry.path);
  }
  return keys;
}

// Kinds whose children a list cannot give. A sequential may have no children, but does nothing then.
bool is_composite(const std::string& kind, const Registry<Module>& layers) {
  if (!layers.contains(kind)) return false;
  return kind == "sequential" || !layers.build(kind, Value::map())->needed_children().empty();
}

void check_name(const Value& settings, const std::string& path, std::vector<ConfigProblem>& problems) {
  const Value* name = settings.is_map() ? settings.find("name") : nullptr;
  if (name == nullptr || name->is_string()) return;
  problems.push_back({name->mark(), path + ".name", str("expected text, found ", name->kind_name())});
}

// Sizes to infer are set to null, so that the block's rules, which may need them, do not judge default values. Complaints about
// the nulls themselves are dropped.
void check_settings(Item item, const Registry<Module>& layers, const std::string& path, std::vector<ConfigProblem>& problems) {
  const std::vector<std::string> unknown_sizes = sizes_to_infer(item, layers);
  for (const std::string& key : unknown_sizes) item.config.set(key, Value());
  std::vector<ConfigProblem> found;
  layers.check(item.kind, item.config, path, found);
  for (ConfigProblem& problem : found) {
    const bool is_unknown_size = std::any_of(unknown_sizes.begin(), unknown_sizes.end(),
                                             [&](const std::string& key) { return problem.path == str(path, '.', key); });
    if (!is_unknown_size) problems.push_back(std::move(problem));
  }
}

void check_item(const Value& value, std::size_t index, const Registry<Module>& layers, const std::string& path,
                std::vector<ConfigProblem>& problems) {
  if (!value.is_string() && (!value.is_map() || value.as_map().size() != 1)) {
    const std::string found = value.is_map() ? str(value.as_map().size(), " keys") : std::string(value.kind_name());
    problems.push_back({value.mark(), path, str("expected one kind, as in relu or {conv2d: {out: 32}}, found ", found)});
    return;
  }
  const Item item = parse_item(value, index);
  if (is_composite(item.kind, layers)) {
    problems.push_back({value.mark(), path, str(item.kind, " is made of other layers; name layers without children")});
    return;
  }
  if (!layers.contains(item.kind)) {
    problems.push_back({value.mark(), path, layers.unknown(item.kind)});
    return;
  }
  const std::string inner = str(path, '.', item.kind);
  if (value.is_map()) check_name(value.as_map().front().value, inner, problems);
  check_settings(item, layers, inner, problems);
}

// Checks all that is known without the input's shape: every fault of every item, with `path` in front.
void check_layer_list(const Value& list, std::string_view path, std::vector<ConfigProblem>& problems) {
  if (list.is_null()) return;  // not given
  if (!list.is_list()) {
    problems.push_back({list.mark(), std::string(path), str("expected a list of layers, found ", list.kind_name())});
    return;
  }
  if (list.as_list().empty()) problems.push_back({list.mark(), std::string(path), "the list is empty; needs a layer"});
  const Registry<Module> layers = builtin_layers();
  for (std::size_t i = 0; i < list.as_list().size(); ++i) check_item(list.as_list()[i], i, layers, item_path(path, i), problems);
}

}  // namespace

void LayerList::fields(Fields& f) {
  f.add("layers", layers,
        {.help = "the layers in order",
         .example = "[{conv2d: {out: 32}}, relu]",
         .observable = "plan",
         .check = &check_layer_list});
  f.require(!layers.is_null(), "layers", "name: layers needs the list of layers");
}

std::unique_ptr<Module> LayerList::build(const Shape& input, std::int64_t) const {
  std::vector<ConfigProblem> problems;
  check_layer_list(layers, "model.layers", problems);
  if (!problems.empty()) throw_config_error(problems);
  const Registry<Module> kinds = builtin_layers();
  const Value::List& list = layers.as_list();
  Chain chain(input);
  for (std::size_t i = 0; i < list.size(); ++i) {
    Item item = parse_item(list[i], i);
    for (const std::string& key : sizes_to_infer(item, kinds)) item.config.set(key, chain.features());
    kinds.check(item.kind, item.config, str(item_path("model.layers", i), '.', item.kind), problems);
    if (!problems.empty()) throw_config_error(problems);  // the items after this one need its output shape
    chain.add(item.name, kinds.build(item.kind, item.config));
  }
  return chain.finish();
}

}  // namespace tessera::models
