#include "layers/model_tree.h"

namespace tessera {

Value describe(const Module& module) {
  Value tree = Value::map();
  tree.set("kind", module.kind());
  tree.set("config", module.config());
  Value::List children;
  for (const Module::Child& child : module.children()) {
    Value named = Value::map();
    named.set("name", child.name);
    Value subtree = describe(*child.module);
    for (Value::Entry& entry : subtree.as_map()) named.set(entry.key, std::move(entry.value));
    children.push_back(std::move(named));
  }
  tree.set("children", Value::list(std::move(children)));
  return tree;
}

std::unique_ptr<Module> rebuild(const Value& tree, const Registry<Module>& layers) {
  std::unique_ptr<Module> module = layers.build(tree.at("kind").as_string(), tree.at("config"));
  for (const Value& child : tree.at("children").as_list()) {
    module->add_child(child.at("name").as_string(), rebuild(child, layers));
  }
  return module;
}

}  // namespace tessera
