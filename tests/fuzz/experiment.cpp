#include "train/experiment.h"

#include <algorithm>

#include "core/support/error.h"
#include "tests/fuzz/targets.h"
#include "train/config/overrides.h"
#include "train/config/yaml.h"
#include "train/config/yaml_writer.h"

namespace tessera::fuzz {
namespace {

// Splits the bytes at each zero byte, which no YAML may contain.
std::vector<std::string_view> split(std::string_view bytes) {
  std::vector<std::string_view> parts;
  for (std::size_t begin = 0; begin <= bytes.size();) {
    const std::size_t end = std::min(bytes.find('\0', begin), bytes.size());
    parts.push_back(bytes.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

}  // namespace

void experiment(std::string_view bytes) {
  const std::vector<std::string_view> parts = split(bytes);
  Experiment first;
  try {
    Value root = parse_yaml(parts[0], "fuzz.yaml");
    for (std::size_t i = 1; i < parts.size(); ++i) apply_override(root, parts[i]);
    first = parse_experiment(std::move(root));
  } catch (const ConfigError&) {
    return;
  }
  const std::string resolved = to_yaml(first.resolved);
  const Experiment again = parse_experiment(parse_yaml(resolved, "config.resolved.yaml"));
  require(again.resolved == first.resolved, "the resolved experiment reads back as another");
  require(to_yaml(again.resolved) == resolved, "the resolved experiment is written in other words the second time");
}

std::vector<std::string> experiment_seeds() { return {}; }  // the seeds are committed: seeds/experiment

}  // namespace tessera::fuzz
