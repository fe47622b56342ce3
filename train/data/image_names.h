// Which entries of a folder count as images, by their names alone.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "train/data/found_file.h"

namespace tessera {

// The deepest nesting of folders that is followed: a link to a folder above would never end.
inline constexpr int kMostImageFolders = 16;

bool is_named_like_an_image(const std::filesystem::path& path);  // .jpg, .jpeg, .png, in any case
bool is_folder(const std::filesystem::path& path);  // links are followed; one to nothing is a file that cannot be read

// The paths in a folder, by byte; names that begin with a dot, Thumbs.db and desktop.ini are passed over. Throws IoError where it
// cannot be listed.
std::vector<std::filesystem::path> image_entries(const std::filesystem::path& folder);

// The images in a folder and in those below it, folder after folder by byte. Among them, with their faults, are folders below it
// that cannot be listed and entries of which it is unknown whether they are folders. Throws IoError "path: reason" where nothing
// is found, where the folder itself cannot be listed, and where folders lie too deep.
std::vector<FoundFile> images_below(const std::filesystem::path& folder);

}  // namespace tessera
