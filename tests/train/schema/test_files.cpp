#include "tests/train/schema/test_files.h"

#include <cstdlib>
#include <limits>

#include "core/support/error.h"
#include "layers/models/model.h"
#include "tests/core/io/temporary_folder.h"
#include "tests/support/image_files.h"
#include "tests/train/run/weights_files.h"
#include "tests/train/schema/key_contexts.h"

namespace tessera::testing {
namespace {

namespace fs = std::filesystem;

void write_image(const fs::path& path, unsigned height, unsigned width, std::uint8_t red) {
  Bytes pixels = pattern(height, width);
  for (std::size_t i = 0; i < pixels.size(); i += 3) pixels[i] = red;
  fs::create_directories(path.parent_path());
  write_file_atomically(real_vfs(), path, encode_png(height, width, pixels));
}

void write_classes(const fs::path& folder, int count, int step) {
  for (int i = 0; i < count; ++i) {
    const auto red = static_cast<std::uint8_t>(step * i);
    write_image(folder / "cat" / (std::to_string(i) + ".png"), 12, 15, red);
    write_image(folder / "dog" / (std::to_string(i) + ".png"), 15, 12, static_cast<std::uint8_t>(128 + red));
  }
}

// A different step gives images that differ even after normalisation.
void write_images(const fs::path& root, int step) {
  write_classes(root / "train", 6, step);
  write_classes(root / "more", 5, step + 1);
  write_classes(root / "test", 3, step + 2);
}

void write_text(const fs::path& path) {
  std::string text;
  for (int i = 0; i < 60; ++i) text += str("the ", i, "th line\n");
  write_file_atomically(real_vfs(), path, text);
}

// Weights for the base experiment's network, from another seed.
void write_weights(const fs::path& path, bool finite) {
  const auto model = build_model({.form = models::Mlp{.hidden = {6}}}, Shape{1, 28, 28, 1});
  initialize(*model, 99);
  SafetensorsFile file{.tensors = model_state(*model).tensors, .metadata = {{"tessera.layout", "OHWI"}}};
  Tensor first = file.tensors.begin()->second.clone();
  if (!finite) first.data<float>()[0] = std::numeric_limits<float>::quiet_NaN();
  file.tensors.begin()->second = first;
  save(path, file);
}

class Files {
 public:
  Files() {
    setenv("TESSERA_TEST_FILES", path().c_str(), 1);
    setenv("TESSERA_CACHE", "", 1);
    write_images(path() / "images", 1);
    write_images(path() / "other", 5);
    write_images(path() / "bad", 1);
    write_file_atomically(real_vfs(), path() / "bad/train/cat/broken.png", "no image");
    write_text(path() / "text.txt");
    write_file_atomically(real_vfs(), path() / "vocab.txt", "[PAD]\n[UNK]\n[MASK]\na\nb\n##a\n##b\nthe\nline\n");
    write_weights(path() / "weights.safetensors", true);
    write_weights(path() / "nonfinite.safetensors", false);
  }
  const fs::path& path() const { return folder_.path(); }

 private:
  TemporaryFolder folder_;
};

}  // namespace

const fs::path& test_files() {
  static const Files files;
  return files.path();
}

}  // namespace tessera::testing
