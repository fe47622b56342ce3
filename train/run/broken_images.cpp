#include "train/run/broken_images.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "core/config/read.h"
#include "core/support/log.h"
#include "core/support/text.h"
#include "train/checkpoint/store.h"

namespace tessera {
namespace {

struct BrokenImagesFile {
  std::vector<BrokenImage> images;

  void fields(Fields& f) { f.add("images", images, {.help = "that could not be decoded, as they were when the run began"}); }
};

template <class Image>
bool names(const std::vector<Image>& images, const std::string& file) {
  return std::ranges::find(images, file, &Image::file) != images.end();
}

const ImageFolderConfig* image_folder(const ExperimentConfig& config) {
  return std::get_if<ImageFolderConfig>(&config.data.form);
}

std::vector<LeftOutImage> left_out_of(const ImageFolderConfig& form) {
  return form.left_out.value_or(std::vector<LeftOutImage>());
}

std::vector<BrokenImage> met_broken(const DataSplits& data) {
  std::vector<BrokenImage> all;
  for (const Subset* const split : {&data.train, &data.val, &data.test}) {
    if (split->dataset == nullptr) continue;
    for (BrokenImage& image : split->dataset->met_broken()) {
      if (!names(all, image.file)) all.push_back(std::move(image));
    }
  }
  return all;
}

void record(Vfs& vfs, const RunFolder& folder, const std::vector<BrokenImage>& met) {
  BrokenImagesFile file{recorded_broken_images(vfs, folder)};
  const std::size_t before = file.images.size();
  std::ranges::copy_if(met, std::back_inserter(file.images),
                       [&](const BrokenImage& image) { return !names(file.images, image.file); });
  if (file.images.size() > before) write_file_atomically(vfs, folder.broken_images(), to_json(write(file), 2) + "\n");
}

std::string go_on(const RunFolder& folder) {
  return str("tessera resume ", shell_word(folder.path()), " data.on_bad_image=skip goes on without it");
}

std::vector<BrokenImage> to_leave_out(Vfs& vfs, const RunFolder& folder, const ExperimentConfig& config, bool skipped_before) {
  const ImageFolderConfig& form = *image_folder(config);
  const std::string& root = config.data.root;
  const std::vector<LeftOutImage> known = left_out_of(form);
  std::vector<BrokenImage> added;
  std::vector<BrokenImage> recorded = recorded_broken_images(vfs, folder);
  std::ranges::copy_if(recorded, std::back_inserter(added), [&](const BrokenImage& image) {
    return !names(known, image.file) && state_of(image, root) != ImageState::whole;
  });
  if (skipped_before) return added;  // images that were bad at the beginning are then not in the run's data
  for (BrokenImage& image : form.undecodable_images(root)) {
    if (!names(known, image.file) && !names(recorded, image.file)) added.push_back(std::move(image));
  }
  return added;
}

}  // namespace

bool skips_bad_images(const Value& config) {
  const Value* const key = config.at("data").find("on_bad_image");
  return key != nullptr && key->as_string() == "skip";
}

std::vector<BrokenImage> recorded_broken_images(Vfs& vfs, const RunFolder& folder) {
  const std::string path = folder.broken_images();
  if (!vfs.exists(path)) return {};
  return read<BrokenImagesFile>(parse_json(vfs.read_file(path), path), path).images;
}

std::string explain_io_error(RunContext& run, const IoError& error) {
  const std::string message = error.what();
  try {
    const std::vector<BrokenImage> met = met_broken(run.state.data());
    if (met.empty()) return message;
    record(run.vfs, run.folder, met);
    const std::string& root = run.config().data.root;
    const auto found =
        std::ranges::find_if(met, [&](const BrokenImage& image) { return message.starts_with(image.path(root) + ": "); });
    if (found == met.end() || !run.options.advise) return message;
    return str(found->path(root), ": ", found->reason, "; ", go_on(run.folder));
  } catch (const std::exception& failure) {  // the broken image ended the run and is the error to report
    log_warning(failure.what());
    return message;
  }
}

std::string changed_images(Vfs& vfs, const RunFolder& folder, const ExperimentConfig& config) {
  const ImageFolderConfig* const form = image_folder(config);
  if (form == nullptr) return "";
  std::string text;
  for (const BrokenImage& image : recorded_broken_images(vfs, folder)) {
    if (names(left_out_of(*form), image.file)) continue;
    const ImageState state = state_of(image, config.data.root);
    if (state != ImageState::gone && state != ImageState::another_file) continue;
    text += str("; ", image.path(config.data.root), ", which ended this run, is ",
                state == ImageState::gone ? "gone" : "another file than the run began with", ": ", go_on(folder));
  }
  return text;
}

std::vector<BrokenImage> leave_out_broken_images(Vfs& vfs, const RunFolder& folder, const Value& before, Value& after) {
  ExperimentConfig config = parse_experiment(after).config;
  if (image_folder(config) == nullptr || !skips_bad_images(after)) return {};
  std::vector<BrokenImage> added = to_leave_out(vfs, folder, config, skips_bad_images(before));
  if (added.empty()) return {};
  ImageFolderConfig& form = std::get<ImageFolderConfig>(config.data.form);
  if (!form.left_out) form.left_out.emplace();
  form.left_out->insert(form.left_out->end(), added.begin(), added.end());
  Value changed = write(config);
  const CheckpointStore store(vfs, folder.checkpoints());
  if (store.empty()) {
    after = std::move(changed);
    return added;
  }
  const Value manifest = store.load_latest().manifest;
  keep_statistics(manifest, *changed.find("data"));
  Experiment experiment = parse_experiment(std::move(changed));
  const ExperimentConfig& now = experiment.config;
  const auto seed = static_cast<std::uint64_t>(now.seed);
  const std::string other = changed_since(manifest, keys_without_left_out(*image_folder(now), now.data.root, seed));
  TESSERA_CHECK(other.empty(), IoError, "resume: beside the images that cannot be decoded, ", other);
  after = std::move(experiment.resolved);
  return added;
}

}  // namespace tessera
