#include "train/run/run_settings.h"

#include <algorithm>

#include "core/support/error.h"
#include "train/config/overrides.h"
#include "train/config/yaml.h"

namespace tessera {
namespace {

void check_allowed(const std::string& text, std::span<const std::string_view> allowed, std::string_view verb) {
  if (std::ranges::find(allowed, std::string_view(text).substr(0, text.find('='))) != allowed.end()) return;
  std::string known;
  for (const std::string_view key : allowed) known += str(known.empty() ? "" : ", ", key);
  throw ConfigError(str(verb, ": '", text, "' could change what was learnt; key=value may set ", known));
}

// Removes micro_batch, which must divide data.batch. Only training uses it.
void drop_micro_batches(Value& root) {
  root.erase("micro_batch");
  Value* stages = root.find("stages");
  if (stages == nullptr) return;
  for (Value& stage : stages->as_list()) stage.erase("micro_batch");
}

}  // namespace

ExperimentConfig settings_of(const RunFolder& run, std::span<const std::string> overrides,
                             std::span<const std::string_view> allowed, std::string_view verb) {
  for (const std::string& text : overrides) check_allowed(text, allowed, verb);
  Value root = load_yaml(run.resolved_config());
  drop_micro_batches(root);
  for (const std::string& text : overrides) apply_override(root, text);
  return parse_experiment(std::move(root)).config;
}

Shape input_of(const Value& manifest) {
  std::vector<std::int64_t> sizes;
  for (const Value& size : manifest.at("input").as_list()) sizes.push_back(size.as_int());
  return Shape(std::span<const std::int64_t>(sizes));
}

}  // namespace tessera
