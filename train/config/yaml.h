// Experiment files and overrides: YAML in the part of the language that has one reading.
//   - one document, at most 1 MiB, valid UTF-8 without control characters; nested at most 64 deep; at most 100000 nodes,
//     counting what aliases repeat;
//   - no tags, no `<<` merge keys, no repeated keys, keys are texts;
//   - true and false, null and ~, decimal integers of 64 bits, finite decimal reals; everything else is text, quotes make text;
//   - ${VAR} inside a text is the environment variable; $${ writes ${ itself.
// What other readers take in several ways (010, 0x10, yes, .inf) is refused with how to write it.
// Source: YAML 1.2.2; yaml-cpp gives the events.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "core/config/read.h"

namespace tessera {

constexpr std::size_t kMaxYamlNodes = 100'000;

// Throws IoError when the file cannot be read, ConfigError with one line "file:line:col: message" per fault. Columns count bytes.
Value load_yaml(const std::string& path);
// Faults that leave the rest readable are appended to `problems` instead, so that a reader of blocks can report its own beside
// them: of a repeated key the first counts.
Value load_yaml(const std::string& path, std::vector<ConfigProblem>& problems);

// `origin` stands in the marks in place of the file.
Value parse_yaml(std::string_view text, const std::string& origin);
Value parse_yaml(std::string_view text, const std::string& origin, std::vector<ConfigProblem>& problems);

}  // namespace tessera
