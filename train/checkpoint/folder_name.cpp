#include "train/checkpoint/folder_name.h"

#include <charconv>
#include <iomanip>
#include <sstream>
#include <utility>

namespace tessera {
namespace {

constexpr std::string_view kPrefix = "step-";
constexpr std::int64_t kMaxNumber = std::int64_t{1} << 53;  // no run gets this far, and incrementing it cannot overflow

std::optional<std::int64_t> parse_number(std::string_view text) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < 0 || value > kMaxNumber) return std::nullopt;
  return value;
}

}  // namespace

std::string checkpoint_folder_name(std::int64_t step, std::int64_t revision) {
  std::ostringstream out;
  out << kPrefix << std::setw(8) << std::setfill('0') << step;
  if (revision > 0) out << '.' << revision;
  return std::move(out).str();
}

std::optional<CheckpointNumber> parse_checkpoint_folder_name(std::string_view name) {
  if (!name.starts_with(kPrefix)) return std::nullopt;
  const std::string_view number = name.substr(kPrefix.size());
  const std::size_t dot = number.find('.');
  const std::optional<std::int64_t> step = parse_number(number.substr(0, dot));
  const std::optional<std::int64_t> revision = dot == std::string_view::npos ? 0 : parse_number(number.substr(dot + 1));
  if (!step || !revision || name != checkpoint_folder_name(*step, *revision)) return std::nullopt;
  return CheckpointNumber{*step, *revision};
}

}  // namespace tessera
