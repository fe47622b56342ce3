#include "train/reproduce/comparison.h"

#include <algorithm>

#include "core/support/hash.h"
#include "core/support/text.h"
#include "train/config_file.h"

namespace tessera {
namespace {

std::string sample_text(const Shape& input) { return str(input.erase(0)); }  // "[1024]" for [1, 1024]

// Compares each input shape of the arm with each of the other arm: each arm chooses its own tuned value. Empty if all agree.
std::string why_incomparable(const ArmChoice& arm, const ArmChoice& other) {
  for (const Shape& input : arm.inputs) {
    const auto differs = std::ranges::find_if(other.inputs, [&](const Shape& its) { return its != input; });
    if (differs == other.inputs.end()) continue;
    return str("'", other.arm->name, "' reads samples of ", sample_text(*differs), ", this arm of ", sample_text(input),
               "; networks are timed against each other on inputs of one shape");
  }
  return "";
}

// The row that this row's speed-up refers to. It is the row itself if that arm has no network of the same input.
std::size_t leader_of(std::span<const ArmRow> rows, std::size_t row) {
  const auto found = std::ranges::find(rows, rows[row].against, &ArmRow::arm);
  const bool fits = found != rows.end() && !found->cells.empty() && found->input == rows[row].input;
  return fits ? static_cast<std::size_t>(found - rows.begin()) : row;
}

std::string key_of(std::span<const ArmRow> rows, std::vector<std::size_t> of) {
  std::ranges::sort(of);
  std::string text;
  for (const std::size_t i : of) text += str(rows[i].arm, ' ', rows[i].cells.front().key, ' ', rows[i].cells.front().seed, '\n');
  constexpr std::size_t kDigits = 16;
  return xxh3_128(text).substr(0, kDigits);
}

}  // namespace

void find_incomparable(const TableFile& table, std::span<const ArmChoice> arms, std::vector<ConfigProblem>& problems) {
  for (std::size_t i = 0; i < arms.size(); ++i) {
    const std::string& named = arms[i].arm->against;
    const auto other = std::ranges::find(arms, named, [](const ArmChoice& each) { return each.arm->name; });
    if (named.empty() || other == arms.end()) continue;
    const std::string reason = why_incomparable(arms[i], *other);
    if (!reason.empty()) problems.push_back(problem_at(table.marks, str("arms[", i, "].against"), reason));
  }
}

std::vector<TimedGroup> timed_groups(std::span<const ArmRow> rows) {
  std::vector<TimedGroup> groups;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (rows[i].cells.empty()) continue;
    const std::size_t leader = leader_of(rows, i);
    auto group = std::ranges::find(groups, leader, [](const TimedGroup& each) { return each.rows.front(); });
    if (group == groups.end()) group = groups.insert(groups.end(), {.rows = {leader}, .key = {}});
    if (i != leader) group->rows.push_back(i);
  }
  for (TimedGroup& group : groups) group.key = key_of(rows, group.rows);
  return groups;
}

}  // namespace tessera
