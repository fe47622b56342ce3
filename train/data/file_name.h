// Names of files in a block of an experiment file.
#pragma once

#include <functional>
#include <string>
#include <utility>

#include "core/config/value.h"

namespace tessera {

using ChangeFile = std::function<void(std::string& file)>;

inline bool is_file_name(const Value& value) { return value.is_string() && !value.as_string().empty(); }

// Leaves what is no file name as it is. The mark stays.
inline void change_file_name(Value& value, const ChangeFile& change) {
  if (!is_file_name(value)) return;
  std::string file = value.as_string();
  change(file);
  value = Value(std::move(file)).with_mark(value.mark());
}

}  // namespace tessera
