// Files that a verb writes after long work.
#pragma once

#include <string>

namespace tessera::cli {

// Found out before the work: throws ConfigError, naming the option, on a folder, or a path in a folder that there is not. "" is
// no file.
void check_output(const std::string& option, const std::string& path);

}  // namespace tessera::cli
