// Faults of what a file or run says of itself.
#pragma once

#include <string>

#include "core/support/error.h"

namespace tessera {

// What `read` gives. Where it refuses what was saved at `place`, its message begins with that, unless it says so already; refused
// shapes are a ConfigError, too: what was saved there does not fit together.
template <class Read>
auto naming_the_place(const std::string& place, const Read& read) {
  const auto named = [&place](const Error& error) {
    const std::string message = error.what();
    return ConfigError(message.find(place) == std::string::npos ? str(place, ": ", message) : message);
  };
  try {
    return read();
  } catch (const ConfigError& error) {
    throw named(error);
  } catch (const ShapeError& error) {
    throw named(error);
  }
}

}  // namespace tessera
