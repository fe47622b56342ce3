#include "core/io/scratch_folder.h"

#include <stdlib.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "core/support/error.h"

namespace tessera {
namespace {

std::filesystem::path system_place() {
  std::error_code error;
  const std::filesystem::path place = std::filesystem::temp_directory_path(error);
  const char* const asked = std::getenv("TMPDIR");
  TESSERA_CHECK(!error, IoError, "no folder for temporary files at ", asked != nullptr ? asked : "/tmp", ": ", error.message(),
                "; set TMPDIR");
  return place;
}

}  // namespace

ScratchFolder::ScratchFolder(std::string_view prefix, const std::filesystem::path& parent) {
  const std::filesystem::path place = parent.empty() ? system_place() : parent;
  std::string name = (place / str(prefix, "-XXXXXX")).string();
  TESSERA_CHECK(::mkdtemp(name.data()) != nullptr, IoError, "cannot make a temporary folder below ", place.string(), ": ",
                std::strerror(errno));
  path_ = name;
}

ScratchFolder::~ScratchFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

}  // namespace tessera
