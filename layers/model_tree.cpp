#include "layers/model_tree.h"

#include <utility>

#include "core/support/error.h"

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

namespace {

std::unique_ptr<Module> rebuilt(const Value& tree, const Registry<Module>& layers) {
  std::unique_ptr<Module> module = layers.build(tree.at("kind").as_string(), tree.at("config"));
  const std::size_t made = module->children().size();  // children that the config makes
  const Value::List& listed = tree.at("children").as_list();
  TESSERA_CHECK(listed.size() >= made, ConfigError, "model tree: ", module->kind(), " has ", listed.size(),
                " children; its config makes ", made);
  for (std::size_t i = 0; i < listed.size(); ++i) {
    const std::string& name = listed[i].at("name").as_string();
    std::unique_ptr<Module> child = rebuilt(listed[i], layers);
    if (i < made) {
      const Module::Child& own = module->children()[i];
      const auto text = [](const std::string& called, const Module& of) {
        return str('\'', called, "', ", of.kind(), ' ', to_json(of.config()));
      };
      TESSERA_CHECK(name == own.name && describe(*child) == describe(*own.module), ConfigError, "model tree: child ",
                    text(name, *child), " of ", module->kind(), " is not what its config makes: ", text(own.name, *own.module));
      continue;
    }
    module->add_child(name, std::move(child));
  }
  for (const std::string& needed : module->needed_children()) {
    TESSERA_CHECK(module->has_child(needed), ConfigError, "model tree: ", module->kind(), " has no child '", needed,
                  "', which it needs");
  }
  return module;
}

}  // namespace

std::unique_ptr<Module> rebuild(const Value& tree, const Registry<Module>& layers) {
  std::unique_ptr<Module> root = rebuilt(tree, layers);
  for_each_module(*root, &Module::check_placed);
  return root;
}

}  // namespace tessera
