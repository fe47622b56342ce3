// Every module kind that model files, checkpoints and `layers:` lists may name.
#pragma once

#include "core/module.h"
#include "core/registry.h"

namespace tessera {

Registry<Module> builtin_layers();

}  // namespace tessera
