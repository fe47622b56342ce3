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

std::unique_ptr<const Pattern> make_n_m(const PatternConfig& config) {
  const std::string text = config.n_m.value_or("2:4");
  const std::optional<NOfM> n_m = parse_n_m(text);
  TESSERA_CHECK(n_m, ConfigError, "n_m: '", text, "' is no N:M with 0 < N < M");
  return std::make_unique<NOfMPattern>(*n_m);
}

std::int64_t group_of(const PatternConfig& config) { return config.group.value_or(64); }

constexpr Entry kPatterns[] = {
    {UnstructuredPattern::kName,
     [](const PatternConfig&) -> std::unique_ptr<const Pattern> { return std::make_unique<UnstructuredPattern>(); }},
    {BlockPattern::kName,
     [](const PatternConfig& config) -> std::unique_ptr<const Pattern> {
       return std::make_unique<BlockPattern>(config.block.value_or(Extent{16, 16}));
     }},
    {NOfMPattern::kName, &make_n_m},
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
  throw ConfigError(str("there is no pattern '", config.pattern, '\''));
}

}  // namespace tessera
