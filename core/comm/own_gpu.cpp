#include "core/comm/own_gpu.h"

#include <cstdlib>
#include <filesystem>
#include <iterator>
#include <vector>

#include "core/support/text.h"

namespace tessera {
namespace {

constexpr const char* kVisible = "CUDA_VISIBLE_DEVICES";

// Counts the driver's folder: asking CUDA would fix which GPUs this process sees.
std::size_t gpus_of_machine() {
  std::error_code none;
  const std::filesystem::directory_iterator gpus("/proc/driver/nvidia/gpus", none);
  return none ? 0 : static_cast<std::size_t>(std::distance(begin(gpus), end(gpus)));
}

}  // namespace

std::optional<std::string> own_gpu(std::size_t number, const std::optional<std::string>& named, std::size_t count) {
  if (!named) return count == 0 ? std::nullopt : std::optional(std::to_string(number % count));
  const std::vector<std::string> gpus = split(*named, ',');
  if (gpus.empty()) return std::nullopt;
  return gpus[number % gpus.size()];
}

void take_own_gpu() {
  for (const char* const variable : {"OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID"}) {
    const char* const number = std::getenv(variable);
    if (number == nullptr) continue;
    const char* const named = std::getenv(kVisible);
    const auto own = own_gpu(std::strtoul(number, nullptr, 10),
                             named == nullptr ? std::nullopt : std::optional<std::string>(named), gpus_of_machine());
    if (own) setenv(kVisible, own->c_str(), 1);
    return;
  }
}

}  // namespace tessera
