#include "core/ops/shared_attention_pattern.h"

#include <memory>
#include <mutex>
#include <tuple>
#include <vector>

namespace tessera {

AttentionPatternPtr shared_attention_pattern(const AttentionPatternOptions& options) {
  static std::mutex lock;
  static std::vector<std::weak_ptr<const AttentionPattern>> held;  // few: at most one per layer of the existing networks
  const std::scoped_lock locked(lock);
  std::erase_if(held, [](const auto& pattern) { return pattern.expired(); });
  for (const auto& candidate : held) {
    AttentionPatternPtr pattern = candidate.lock();
    if (pattern && same_pattern(pattern->options(), options)) return pattern;
  }
  auto pattern = std::make_shared<const AttentionPattern>(options);
  held.push_back(pattern);
  return pattern;
}

bool same_pattern(const AttentionPatternOptions& a, const AttentionPatternOptions& b) {
  const auto values = [](const AttentionPatternOptions& o) {
    return std::tuple(o.positions, o.heads, o.band, o.density, o.block, o.causal, o.stream.key);
  };
  return values(a) == values(b);
}

}  // namespace tessera
