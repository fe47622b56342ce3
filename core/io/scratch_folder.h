// A fresh folder, by default below the system's place for temporary files ($TMPDIR, else /tmp), removed with its content at the
// end of the scope, however that ends.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

namespace tessera {

class ScratchFolder {
 public:
  // <parent>/<prefix>-XXXXXX; an empty parent is the system's place. Throws IoError when it cannot be made.
  explicit ScratchFolder(std::string_view prefix, const std::filesystem::path& parent = {});
  ~ScratchFolder();
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;

  const std::filesystem::path& path() const noexcept { return path_; }
  std::string operator/(std::string_view name) const { return (path_ / name).string(); }

 private:
  std::filesystem::path path_;
};

}  // namespace tessera
