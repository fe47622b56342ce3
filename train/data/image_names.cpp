#include "train/data/image_names.h"

#include <algorithm>
#include <cctype>

#include "core/support/error.h"

namespace tessera {
namespace {

namespace fs = std::filesystem;

bool is_passed_over(const std::string& name) { return name.starts_with('.') || name == "Thumbs.db" || name == "desktop.ini"; }

void collect(const fs::path& folder, int depth, std::vector<std::string>& images) {
  TESSERA_CHECK(depth <= kMostImageFolders, IoError, folder.string(), ": is more than ", kMostImageFolders, " folders deep");
  for (const fs::path& path : image_entries(folder)) {
    if (is_folder(path)) {
      collect(path, depth + 1, images);
    } else if (is_named_like_an_image(path)) {
      images.push_back(path.string());
    }
  }
}

}  // namespace

bool is_named_like_an_image(const fs::path& path) {
  std::string extension = path.extension().string();
  std::ranges::transform(extension, extension.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return extension == ".jpg" || extension == ".jpeg" || extension == ".png";
}

bool is_folder(const fs::path& path) {
  std::error_code ignored;
  return fs::is_directory(path, ignored);
}

std::vector<fs::path> image_entries(const fs::path& folder) {
  std::error_code error;
  std::vector<fs::path> paths;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    if (!is_passed_over(at->path().filename().string())) paths.push_back(at->path());
  }
  TESSERA_CHECK(!error, IoError, folder.string(), ": cannot list: ", error.message());
  std::ranges::sort(paths, {}, [](const fs::path& path) { return path.string(); });
  return paths;
}

std::vector<std::string> images_below(const fs::path& folder) {
  std::vector<std::string> images;
  collect(folder, 0, images);
  TESSERA_CHECK(!images.empty(), IoError, folder.string(), ": has no .jpg, .jpeg or .png file");
  return images;
}

}  // namespace tessera
