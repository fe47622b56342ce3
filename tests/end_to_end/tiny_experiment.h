// An experiment that is over in no time and has a layer to factor, conv2, for tests that do not care for the network.
#pragma once

#include <string>
#include <string_view>

namespace tessera::testing {

struct TinyOptions {
  std::string_view threads = "{compute: 1, loader: 0}";
  int classes = 10;
  bool batch_norm = false;  // behind conv1
};

// A file named "tiny": two convolutions of 8 channels, conv1 and conv2, then fc; and the blocks `rest`.
std::string tiny_experiment(std::string_view rest, const TinyOptions& options = {});

}  // namespace tessera::testing
