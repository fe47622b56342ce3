// What a network may learn from text, by the names that files and programs have for it.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <string_view>

#include "core/support/error.h"

namespace tessera {

enum class TextTask { next_token, masked_token };
inline constexpr std::array<std::string_view, 2> kTextTasks{"next-token", "masked-token"};  // in the order of their numbers

constexpr std::string_view name_of(TextTask task) { return kTextTasks[static_cast<std::size_t>(task)]; }

// Throws ConfigError on another name.
inline TextTask task_named(std::string_view name) {
  const auto found = std::ranges::find(kTextTasks, name);
  TESSERA_CHECK(found != kTextTasks.end(), ConfigError, "text has no task '", name, "'");
  return static_cast<TextTask>(found - kTextTasks.begin());
}

}  // namespace tessera
