// The images of one split, as they lie on the disk: folder/<class>/**.jpg|png. Nothing is kept in memory but names.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "train/data/image_dataset.h"
#include "train/data/left_out.h"

namespace tessera {

struct BadFile {
  std::string path;
  std::string reason;
};

struct ImageFile {
  std::string path;  // below the split's folder, with '/'
  std::int64_t label = 0;
  std::uint64_t bytes = 0;
  std::int64_t written = 0;  // when, by the file system's clock
  std::string ends = {};  // XXH3-128 of the first and last 16 KiB: the whole file up to 32 KiB
  std::optional<ImageFacts> facts = {};  // once decoded
  bool left_out = false;  // the run goes on without it: its place is kept, its pixels are never read
};

struct ImageListing {
  std::filesystem::path folder;
  std::vector<std::string> classes;  // names of the sub-folders, by byte
  std::vector<ImageFile> files;  // by path, byte by byte
  std::vector<BadFile> bad;  // by path
};

// Lists the split's classes and images; sub-folders of a class belong to it, links are followed. Names that begin with a dot,
// Thumbs.db and desktop.ini are passed over everywhere, other files beside the class folders when they are not named like an
// image (.jpg, .jpeg, .png). What cannot be an image (by its first bytes) or lies beside the class folders comes back as `bad`.
// Throws IoError when the folder is missing, unreadable or has no class folder, when a class folder has no file, and on class
// names that are not UTF-8.
ImageListing list_images(const std::filesystem::path& folder);

// Reads length, time and both ends of a file; returns why it cannot be an image, or nothing.
std::string probe_image(const std::filesystem::path& path, ImageFile& file);

// Files of the listing that cannot be decoded, in its order. `folder` is the split's, below data.root. From the cache when these
// files were decoded before.
std::vector<BrokenImage> undecodable(const ImageListing& listing, const std::string& folder);

// take_out() removes those of `images` that are of this split from the listing, whatever is at their places now. keep_places()
// puts them back as they were when the run began, so that names, order and fingerprint are those of that time. An image whose
// class is gone stays out.
void take_out(ImageListing& listing, const std::string& folder, const std::vector<LeftOutImage>& images);
void keep_places(ImageListing& listing, const std::string& folder, const std::vector<LeftOutImage>& images);
// The image's path below the split's folder; nothing when it is of another split.
std::optional<std::string> path_in(const std::string& folder, const LeftOutImage& image);

// Adds each file's path, length and ends.
void hash_files(const std::vector<ImageFile>& files, Xxh3Stream& stream);

// Moves files that cannot be decoded to `bad`, as decode_all() does. Which ones fail comes from the cache when these files were
// decoded before; then the files get no facts.
void drop_undecodable(ImageListing& listing);

// Decodes every file on the OpenMP threads: gives each its facts and moves what fails to `bad`.
void decode_all(ImageListing& listing);

// Throws IoError when a class has no file left to read.
void check_classes_filled(const ImageListing& listing);

// Throws IoError naming the classes that only one of the two has.
void check_same_classes(const ImageListing& first, const ImageListing& second);

// "3 files:\n  a.png: reason\n  ..." with at most ten of them.
std::string describe(const std::vector<BadFile>& bad);

}  // namespace tessera
