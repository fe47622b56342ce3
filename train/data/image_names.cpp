#include "train/data/image_names.h"

#include <algorithm>
#include <cctype>
#include <utility>

#include "core/support/error.h"

namespace tessera {
namespace {

namespace fs = std::filesystem;

bool is_passed_over(const std::string& name) { return name.starts_with('.') || name == "Thumbs.db" || name == "desktop.ini"; }

struct Entries {
  std::vector<fs::path> paths;
  std::string fault;  // why the listing may be incomplete; empty if it is complete
};

Entries entries_of(const fs::path& folder) {
  std::error_code error;
  Entries entries;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    if (!is_passed_over(at->path().filename().string())) entries.paths.push_back(at->path());
  }
  if (error) entries.fault = str("cannot list: ", error.message());
  std::ranges::sort(entries.paths, {}, [](const fs::path& path) { return path.string(); });
  return entries;
}

void collect(std::vector<fs::path> entries, int depth, std::vector<FoundFile>& found) {
  for (const fs::path& path : entries) {
    std::error_code error;
    const fs::file_type type = fs::status(path, error).type();
    if (type == fs::file_type::directory) {
      TESSERA_CHECK(depth < kMostImageFolders, IoError, path.string(), ": is more than ", kMostImageFolders, " folders deep");
      Entries below = entries_of(path);
      collect(std::move(below.paths), depth + 1, found);
      if (!below.fault.empty()) found.push_back({path.string(), below.fault});
    } else if (is_named_like_an_image(path)) {
      found.push_back({path.string()});
    } else if (error) {
      found.push_back({path.string(), str("cannot tell whether it is a folder: ", error.message())});
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
  Entries entries = entries_of(folder);
  TESSERA_CHECK(entries.fault.empty(), IoError, folder.string(), ": ", entries.fault);
  return std::move(entries.paths);
}

std::vector<FoundFile> images_below(const fs::path& folder) {
  std::vector<FoundFile> found;
  collect(image_entries(folder), 0, found);
  TESSERA_CHECK(!found.empty(), IoError, folder.string(), ": has no .jpg, .jpeg or .png file");
  return found;
}

}  // namespace tessera
