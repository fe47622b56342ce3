// A run whose ADMM stage holds weights to low rank, and what its clock is made to have found.
#pragma once

#include <string>
#include <string_view>

namespace tessera::testing {

// A file named "held": convolutions conv1 of 16 and conv2 of 32 channels, then fc; and the blocks `rest`.
std::string held_experiment(std::string_view rest);

// The choices in the decisions.json of the run folder, but that a clock found conv1 not faster and all else faster.
std::string without_conv1(const std::string& run);

}  // namespace tessera::testing
