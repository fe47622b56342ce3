// Files that a verb writes after long work.
#pragma once

#include <span>
#include <string>

namespace tessera::cli {

// Found out before the work: throws ConfigError, naming the option, on a folder, device or pipe, a path in a folder that there is
// not or that cannot be written into, and symbolic links without an end; others are followed (core/io/atomic_file.h). "" is no
// file.
void check_output(const std::string& option, const std::string& path);
// Throws the same where the file is one of the inputs.
void check_no_input(const std::string& option, const std::string& path, std::span<const std::string> inputs);

}  // namespace tessera::cli
