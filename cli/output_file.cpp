#include "cli/output_file.h"

#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "core/io/vfs.h"
#include "core/support/error.h"

namespace tessera::cli {

void check_output(const std::string& option, const std::string& path) {
  if (path.empty()) return;
  const std::filesystem::path parent = std::filesystem::absolute(path).parent_path();
  TESSERA_CHECK(std::filesystem::is_directory(parent), ConfigError, option, ": there is no folder ", parent.string());
  TESSERA_CHECK(access(parent.c_str(), W_OK) == 0, ConfigError, option, ": cannot write into ", parent.string(), ": ",
                std::strerror(errno));
  TESSERA_CHECK(!std::filesystem::is_directory(path), ConfigError, option, ": ", path, " is a folder; name a file");
}

}  // namespace tessera::cli
