// Text for runs of small language models.
#pragma once

#include <string>
#include <string_view>

#include "core/support/error.h"

namespace tessera::testing {

// Lines that differ in the number at their begin: "0 bottles of beer on the wall".
inline std::string numbered_lines(int count, std::string_view what = "beer") {
  std::string text;
  for (int i = 0; i < count; ++i) text += str(i, " bottles of ", what, " on the wall\n");
  return text;
}

}  // namespace tessera::testing
