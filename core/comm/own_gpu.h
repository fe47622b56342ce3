// Which of a machine's GPUs a rank computes on.
#pragma once

#include <optional>
#include <string>

namespace tessera {

// What CUDA_VISIBLE_DEVICES is to be for the rank with this number on its machine: one GPU of those that it names, or of all
// `count` where it is not set. Ranks beyond the last begin again with the first. nullopt: as it is.
std::optional<std::string> own_gpu(std::size_t number, const std::optional<std::string>& named, std::size_t count);

// Sets CUDA_VISIBLE_DEVICES of this process to that, by the number that mpirun gives it. To be called before anything asks CUDA
// for GPUs.
void take_own_gpu();

}  // namespace tessera
