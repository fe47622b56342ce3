// Errors in what a file or a run says of itself.
#pragma once

#include <string>

#include "core/support/error.h"

namespace tessera {

// Returns what `read` returns. Where `read` refuses what was saved at `place`, this throws a ConfigError whose message begins
// with `place`, unless it names `place` already. A ShapeError becomes a ConfigError, too: what was saved there does not fit
// together.
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
