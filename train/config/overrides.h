// Settings given beside an experiment file, and the merge of blocks: command line over file, stage over experiment.
#pragma once

#include <string_view>

#include "core/config/value.h"

namespace tessera {

// "optimizer.lr=0.05", "stages[0].train=2e", "data={name: cifar10}" set a key (split at the first '='; the right side is YAML),
// "~stages[1].admm" drops one. Absent blocks on the way are made. Every new value is marked "command line". Throws ConfigError
// quoting `text` on a malformed path, an index out of range, a step into something that is no block or list, a dropped key that
// is absent.
void apply_override(Value& root, std::string_view text);

// `over` upon `base`, key by key through blocks; lists and scalars are replaced. A block whose `name` differs from the one below
// it replaces that block whole: the other keys belonged to another kind of thing. The rule holds for the outermost pair too, so a
// stage, whose own `name` is a label, is merged with the experiment block by block.
Value merge(const Value& base, const Value& over);

}  // namespace tessera
