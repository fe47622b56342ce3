#include "compress/patterns/builtin.h"

#include "compress/patterns/block.h"
#include "compress/patterns/channel.h"
#include "compress/patterns/n_m.h"
#include "compress/patterns/tile.h"
#include "compress/patterns/tile_element.h"
#include "compress/patterns/unstructured.h"
#include "core/support/error.h"

namespace tessera {
namespace {

struct Entry {
  std::string_view name;
  std::unique_ptr<const Pattern> (*make)(const PatternConfig& config);
};

std::int64_t group_of(const PatternConfig& config) { return config.group.value_or(64); }

constexpr Entry kPatterns[] = {
    {UnstructuredPattern::kName,
     [](const PatternConfig&) -> std::unique_ptr<const Pattern> { return std::make_unique<UnstructuredPattern>(); }},
    {BlockPattern::kName,
     [](const PatternConfig& config) -> std::unique_ptr<const Pattern> {
       return std::make_unique<BlockPattern>(config.block.value_or(Extent{16, 16}));
     }},
    {NOfMPattern::kName,
     [](const PatternConfig& config) -> std::unique_ptr<const Pattern> {
       return std::make_unique<NOfMPattern>(config.n_m_or_default());
     }},
    {TilePattern::kName,
     [](const PatternConfig& config) -> std::unique_ptr<const Pattern> {
       return std::make_unique<TilePattern>(group_of(config));
     }},
    {TileElementPattern::kName,
     [](const PatternConfig& config) -> std::unique_ptr<const Pattern> {
       return std::make_unique<TileElementPattern>(group_of(config), config.extra_or_default());
     }},
    {ChannelPattern::kName,
     [](const PatternConfig&) -> std::unique_ptr<const Pattern> { return std::make_unique<ChannelPattern>(); }},
};

}  // namespace

std::vector<std::string_view> pattern_names() {
  std::vector<std::string_view> names;
  for (const Entry& entry : kPatterns) names.push_back(entry.name);
  return names;
}

std::unique_ptr<const Pattern> make_pattern(const PatternConfig& config) {
  for (const Entry& entry : kPatterns) {
    if (entry.name == config.pattern) return entry.make(config);
  }
  std::string known;
  for (const std::string_view name : pattern_names()) known += str(known.empty() ? "" : ", ", name);
  throw ConfigError(str("there is no pattern '", config.pattern, "'; there are ", known));
}

}  // namespace tessera
