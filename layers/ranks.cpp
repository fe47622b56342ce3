#include "layers/ranks.h"

#include "core/support/error.h"

namespace tessera {

std::string to_string(const Ranks& ranks) {
  std::string text;
  for (const Rank& rank : ranks) text += str(text.empty() ? "" : " ", rank.name, ' ', rank.value);
  return text;
}

Value to_value(const Ranks& ranks) {
  Value map = Value::map();
  for (const Rank& rank : ranks) map.set(rank.name, rank.value);
  return map;
}

Ranks ranks_from(const Value& map) {
  Ranks ranks;
  for (const Value::Entry& rank : map.as_map()) ranks.push_back({rank.key, rank.value.as_int()});
  return ranks;
}

void check_ranks(const std::string& path, const std::string& kind, const std::vector<RankProblem>& problems) {
  if (problems.empty()) return;
  throw ConfigError(str(path.empty() ? kind : str("layer '", path, "'"), ": ", problems.front().message));
}

void append_range_problem(const std::string& rank, std::int64_t value, std::int64_t size, std::vector<RankProblem>& problems) {
  if (value >= 1 && value <= size) return;
  const std::string name = rank == "rank" ? rank : rank + " rank";
  problems.push_back({rank, str(name, " is ", value, ", the mode has size ", size, "; legal range is 1..", size)});
}

}  // namespace tessera
