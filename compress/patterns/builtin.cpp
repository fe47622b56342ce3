#include "compress/patterns/builtin.h"

#include "compress/patterns/unstructured.h"

namespace tessera {

std::span<const Pattern* const> builtin_patterns() {
  static const UnstructuredPattern unstructured;
  static const Pattern* const all[]{&unstructured};
  return all;
}

std::vector<std::string_view> pattern_names() {
  std::vector<std::string_view> names;
  for (const Pattern* const pattern : builtin_patterns()) names.push_back(pattern->name());
  return names;
}

const Pattern* find_pattern(std::string_view name) {
  for (const Pattern* const pattern : builtin_patterns()) {
    if (pattern->name() == name) return pattern;
  }
  return nullptr;
}

}  // namespace tessera
