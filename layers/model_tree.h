// A model's structure without its values, as checkpoints store it: the only source of structure for resume, eval and export.
#pragma once

#include <memory>

#include "core/nn/module.h"
#include "core/nn/registry.h"

namespace tessera {

// {kind, config, children: [{name, kind, config, children}, ...]}
Value describe(const Module& module);

// The same tree with fresh values: parameters are zeros or a norm's ones until loaded or initialised.
// Children that a config makes come first, and are listed as it makes them. Throws ConfigError where they are not, on a missing
// key, an unknown kind, a fault in a config, two children of one name, a child that is needed and not there, or a module that
// does not fit where it is (Module::check_placed): the tree is of a whole network.
std::unique_ptr<Module> rebuild(const Value& tree, const Registry<Module>& layers);

}  // namespace tessera
