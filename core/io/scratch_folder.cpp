#include "core/io/scratch_folder.h"

#include <stdlib.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "core/error.h"

namespace tessera {

ScratchFolder::ScratchFolder(std::string_view prefix) {
  std::error_code error;
  const std::filesystem::path parent = std::filesystem::temp_directory_path(error);
  const char* const asked = std::getenv("TMPDIR");
  TESSERA_CHECK(!error, IoError, "no folder for temporary files at ", asked != nullptr ? asked : "/tmp", ": ", error.message(),
                "; set TMPDIR");
  std::string name = (parent / str(prefix, "-XXXXXX")).string();
  TESSERA_CHECK(::mkdtemp(name.data()) != nullptr, IoError, "cannot make a temporary folder below ", parent.string(), ": ",
                std::strerror(errno));
  path_ = name;
}

ScratchFolder::~ScratchFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

}  // namespace tessera
