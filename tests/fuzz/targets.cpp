#include "tests/fuzz/targets.h"

#include <array>
#include <string>

namespace tessera::fuzz {

std::span<const Target> targets() {
  static constexpr std::array<Target, 11> all{{
      {"experiment", experiment, experiment_seeds},
      {"safetensors", safetensors, safetensors_seeds},
      {"network", network, network_seeds},
      {"manifest", manifest, manifest_seeds},
      {"json", json, json_seeds},
      {"idx", idx, idx_seeds},
      {"cifar", cifar, cifar_seeds},
      {"image", image, image_seeds},
      {"tokenizer", tokenizer, tokenizer_seeds},
      {"npy", npy, npy_seeds},
      {"c_interface", c_interface, c_interface_seeds},
  }};
  return all;
}

const Target& target(std::string_view name) {
  for (const Target& each : targets()) {
    if (each.name == name) return each;
  }
  throw std::out_of_range("no fuzz target named " + std::string(name));
}

}  // namespace tessera::fuzz
