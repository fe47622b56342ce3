// The keys of an experiment file as a page of Markdown: a table for each block.
#pragma once

#include <string>
#include <vector>

#include "core/config/read.h"

namespace tessera::cli {

// Forms of a block that share a key share its row. A block whose keys are those of an earlier one refers to it.
std::string schema_page(const std::vector<SchemaEntry>& entries);

}  // namespace tessera::cli
