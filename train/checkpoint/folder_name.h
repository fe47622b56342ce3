// The names of checkpoint folders: "step-00001200", with ".1", ".2", ... appended where the same step is saved again.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace tessera {

std::string checkpoint_folder_name(std::int64_t step, std::int64_t revision = 0);

struct CheckpointNumber {
  std::int64_t step = 0;
  std::int64_t revision = 0;
};
// Empty for every name that checkpoint_folder_name does not give: "step-12", "step-backup".
std::optional<CheckpointNumber> parse_checkpoint_folder_name(std::string_view name);

}  // namespace tessera
