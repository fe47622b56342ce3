// Every module kind that model files, checkpoints and `layers:` lists may name.
#pragma once

#include "core/nn/module.h"
#include "core/nn/registry.h"

namespace tessera {

Registry<Module> builtin_layers();

}  // namespace tessera
