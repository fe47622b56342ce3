#include "train/data/image_listing.h"

#include <algorithm>
#include <fstream>
#include <iterator>
#include <utility>

#include "core/cpu/parallel.h"
#include "core/io/answer_cache.h"
#include "core/support/error.h"
#include "train/config/utf8.h"
#include "train/data/image.h"
#include "train/data/image_names.h"

namespace tessera {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kEnd = 16384;

void collect(const fs::path& folder, const std::string& prefix, std::int64_t label, int depth, std::vector<ImageFile>& files) {
  TESSERA_CHECK(depth <= kMostImageFolders, IoError, folder.string(), ": is more than ", kMostImageFolders,
                " folders below its class folder");
  for (const fs::path& path : image_entries(folder)) {
    const std::string name = prefix + "/" + path.filename().string();
    if (is_folder(path)) {
      collect(path, name, label, depth + 1, files);
    } else {
      files.push_back({.path = name, .label = label});
    }
  }
}

// Runs `examine` on every file. Moves the files for which it returns a reason to `bad`.
template <class Examine>
void sift(ImageListing& listing, const Examine& examine) {
  std::vector<std::string> reasons(listing.files.size());
  const auto count = static_cast<std::int64_t>(reasons.size());
  cpu::parallel_for(count, 1, [&](std::int64_t begin, std::int64_t end) {
    for (auto i = static_cast<std::size_t>(begin); i < static_cast<std::size_t>(end); ++i) {
      reasons[i] = examine(listing.folder / listing.files[i].path, listing.files[i]);
    }
  });
  std::vector<ImageFile> good;
  for (std::size_t i = 0; i < reasons.size(); ++i) {
    if (reasons[i].empty()) {
      good.push_back(std::move(listing.files[i]));
    } else {
      listing.bad.push_back({(listing.folder / listing.files[i].path).string(), reasons[i]});
    }
  }
  listing.files = std::move(good);
  std::ranges::sort(listing.bad, {}, &BadFile::path);
}

std::string joined(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += str(text.empty() ? "" : ", ", '\'', name, '\'');
  return text;
}

}  // namespace

std::string probe_image(const fs::path& path, ImageFile& file) {
  std::error_code error;
  if (!fs::is_regular_file(path, error)) return error ? str("cannot open: ", error.message()) : std::string("is no regular file");
  file.bytes = fs::file_size(path, error);
  file.written = fs::last_write_time(path, error).time_since_epoch().count();
  std::ifstream in(path, std::ios::binary);
  if (error || !in) return "cannot open";
  std::string head(std::min(file.bytes, kEnd), '\0');
  std::string tail(std::min(file.bytes - head.size(), kEnd), '\0');
  in.read(head.data(), static_cast<std::streamsize>(head.size()));
  in.seekg(static_cast<std::streamoff>(file.bytes - tail.size()));
  in.read(tail.data(), static_cast<std::streamsize>(tail.size()));
  if (!in) return "cannot read";
  file.ends = xxh3_128(head + tail);
  if (head.empty()) return "the file is empty";
  return image_format(head) == ImageFormat::unknown ? "not a JPEG or PNG file" : "";
}

ImageListing list_images(const fs::path& folder) {
  TESSERA_CHECK(is_folder(folder), IoError, folder.string(), ": no such folder");
  ImageListing listing{folder, {}, {}, {}};
  for (const fs::path& path : image_entries(folder)) {
    const std::string name = path.filename().string();
    if (!is_folder(path)) {
      if (is_named_like_an_image(path)) listing.bad.push_back({path.string(), "lies in no class folder"});
      continue;
    }
    TESSERA_CHECK(find_invalid_utf8(name) == std::string_view::npos, IoError, path.string(),
                  ": the name of a class folder must be UTF-8");
    const std::size_t before = listing.files.size();
    collect(path, name, static_cast<std::int64_t>(listing.classes.size()), 1, listing.files);
    TESSERA_CHECK(listing.files.size() > before, IoError, path.string(), ": the class folder has no file; fill or remove it");
    listing.classes.push_back(name);
  }
  TESSERA_CHECK(!listing.classes.empty(), IoError, folder.string(), ": has no class folder; images belong into ",
                (folder / "<class>" / "<name>.jpg").string());
  sift(listing, [](const fs::path& path, ImageFile& file) {
    const bool named = find_invalid_utf8(file.path) == std::string_view::npos;
    return named ? probe_image(path, file) : std::string("its name must be UTF-8");
  });
  return listing;
}

void decode_all(ImageListing& listing) {
  sift(listing, [](const fs::path& path, ImageFile& file) -> std::string {
    try {
      const Image image = read_image(path);
      file.facts = ImageFacts{image.height, image.width, hash_pixels(image.height, image.width, 3, image.pixels)};
      return {};
    } catch (const IoError& error) {
      return std::string(error.what()).substr(path.string().size() + 2);  // after "path: "
    }
  });
}

void hash_files(const std::vector<ImageFile>& files, Xxh3Stream& stream) {
  for (const ImageFile& file : files) {
    stream.update({file.path.c_str(), file.path.size() + 1});
    stream.update({reinterpret_cast<const char*>(&file.bytes), sizeof file.bytes});
    stream.update(file.ends);
  }
}

void drop_undecodable(ImageListing& listing) {
  Xxh3Stream content;
  hash_files(listing.files, content);
  for (const ImageFile& file : listing.files) {  // a repair may change neither length nor ends, but it changes the time
    content.update({reinterpret_cast<const char*>(&file.written), sizeof file.written});
  }
  const AnswerCache cache("images that cannot be decoded, 2: " + content.hex());
  if (const std::optional<Value> known = cache.find(); known && known->is_map()) {
    sift(listing, [&known](const fs::path&, const ImageFile& file) {
      const Value* reason = known->find(file.path);
      return reason != nullptr && reason->is_string() ? reason->as_string() : std::string();
    });
    return;
  }
  const ImageListing before = listing;
  decode_all(listing);
  Value reasons = Value::map();
  for (const ImageFile& file : before.files) {
    const std::string path = (listing.folder / file.path).string();
    const auto found = std::ranges::find(listing.bad, path, &BadFile::path);
    if (found != listing.bad.end()) reasons.set(file.path, found->reason);
  }
  cache.store(reasons);
}

std::vector<BrokenImage> undecodable(const ImageListing& listing, const std::string& folder) {
  ImageListing decoded = listing;
  decoded.bad.clear();
  drop_undecodable(decoded);
  std::vector<BrokenImage> broken;
  std::size_t at = 0;  // the files that are left keep the order of the listing
  for (const ImageFile& file : listing.files) {
    if (at < decoded.files.size() && decoded.files[at].path == file.path) {
      ++at;
      continue;
    }
    const std::string path = (listing.folder / file.path).string();
    const auto found = std::ranges::find(decoded.bad, path, &BadFile::path);
    broken.push_back(
        {{.file = (fs::path(folder) / file.path).string(), .bytes = static_cast<std::int64_t>(file.bytes), .ends = file.ends},
         found->reason});
  }
  return broken;
}

std::optional<std::string> path_in(const std::string& folder, const LeftOutImage& image) {
  const std::string prefix = (fs::path(folder) / "").string();
  return image.file.starts_with(prefix) ? std::optional(image.file.substr(prefix.size())) : std::nullopt;
}

void take_out(ImageListing& listing, const std::string& folder, const std::vector<LeftOutImage>& images) {
  for (const LeftOutImage& image : images) {
    const std::optional<std::string> path = path_in(folder, image);
    if (!path) continue;
    std::erase_if(listing.files, [&](const ImageFile& file) { return file.path == *path; });
    std::erase_if(listing.bad, [&](const BadFile& bad) { return bad.path == (listing.folder / *path).string(); });
  }
}

void keep_places(ImageListing& listing, const std::string& folder, const std::vector<LeftOutImage>& images) {
  for (const LeftOutImage& image : images) {
    const std::optional<std::string> path = path_in(folder, image);
    if (!path) continue;
    const auto label = std::ranges::find(listing.classes, path->substr(0, path->find('/')));
    if (label == listing.classes.end()) continue;
    // Listings are in path order, so "a/x" comes before "a.png". In byte order it would come after.
    const auto place =
        std::ranges::lower_bound(listing.files, fs::path(*path), {}, [](const ImageFile& file) { return fs::path(file.path); });
    listing.files.insert(place, {.path = *path,
                                 .label = label - listing.classes.begin(),
                                 .bytes = static_cast<std::uint64_t>(image.bytes),
                                 .ends = image.ends,
                                 .left_out = true});
  }
}

void check_classes_filled(const ImageListing& listing) {
  std::vector<bool> filled(listing.classes.size(), false);
  std::vector<BadFile> bad = listing.bad;
  for (const ImageFile& file : listing.files) {
    if (file.left_out) {
      bad.push_back({(listing.folder / file.path).string(), "the run goes on without it"});
    } else {
      filled[static_cast<std::size_t>(file.label)] = true;
    }
  }
  for (std::size_t label = 0; label < filled.size(); ++label) {
    TESSERA_CHECK(filled[label], IoError, (listing.folder / listing.classes[label]).string(),
                  ": the class folder has no readable image: ", describe(bad));
  }
}

void check_same_classes(const ImageListing& first, const ImageListing& second) {
  std::vector<std::string> only_first;
  std::vector<std::string> only_second;
  std::ranges::set_difference(first.classes, second.classes, std::back_inserter(only_first));
  std::ranges::set_difference(second.classes, first.classes, std::back_inserter(only_second));
  if (only_first.empty() && only_second.empty()) return;
  std::string text = str("class folders differ between ", first.folder.string(), " and ", second.folder.string());
  if (!only_first.empty()) text += str("; only the first has ", joined(only_first));
  if (!only_second.empty()) text += str("; only the second has ", joined(only_second));
  throw IoError(text);
}

std::string describe(const std::vector<BadFile>& bad) {
  constexpr std::size_t kShown = 10;
  std::string text = str(bad.size(), bad.size() == 1 ? " file:" : " files:");
  for (std::size_t i = 0; i < std::min(bad.size(), kShown); ++i) text += str("\n  ", bad[i].path, ": ", bad[i].reason);
  if (bad.size() > kShown) text += str("\n  and ", bad.size() - kShown, " more");
  return text;
}

}  // namespace tessera
