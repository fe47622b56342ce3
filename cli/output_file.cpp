#include "cli/output_file.h"

#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "core/io/atomic_file.h"
#include "core/support/error.h"

namespace tessera::cli {
namespace {

// The folder of the file that is written.
std::filesystem::path folder_of(const std::string& option, const std::string& path) {
  try {
    return std::filesystem::absolute(written_file(path)).parent_path();
  } catch (const IoError& error) {
    throw ConfigError(str(option, ": ", error.what()));
  }
}

}  // namespace

void check_output(const std::string& option, const std::string& path) {
  if (path.empty()) return;
  const std::filesystem::path parent = folder_of(option, path);
  TESSERA_CHECK(std::filesystem::is_directory(parent), ConfigError, option, ": there is no folder ", parent.string());
  TESSERA_CHECK(access(parent.c_str(), W_OK) == 0, ConfigError, option, ": cannot write into ", parent.string(), ": ",
                std::strerror(errno));
  std::error_code ignored;
  const std::filesystem::file_status status = std::filesystem::status(path, ignored);
  TESSERA_CHECK(!std::filesystem::is_directory(status), ConfigError, option, ": ", path, " is a folder; name a file");
  TESSERA_CHECK(!std::filesystem::exists(status) || std::filesystem::is_regular_file(status), ConfigError, option, ": ", path,
                " is a device, pipe or socket; name a file, which is written anew");
}

void check_no_input(const std::string& option, const std::string& path, std::span<const std::string> inputs) {
  if (path.empty()) return;
  for (const std::string& input : inputs) {
    std::error_code ignored;
    TESSERA_CHECK(!std::filesystem::equivalent(path, input, ignored), ConfigError, option, ": ", path,
                  " is an input, too, which it would replace; name another file");
  }
}

}  // namespace tessera::cli
