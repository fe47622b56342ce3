#include <algorithm>
#include <bit>
#include <filesystem>
#include <iostream>
#include <memory>
#include <vector>

#include "cli/verbs.h"
#include "core/config/value.h"
#include "core/io/vfs.h"
#include "core/support/error.h"
#include "train/data/image_listing.h"

namespace tessera::cli {
namespace {

namespace fs = std::filesystem;

struct InitArguments {
  std::string name;
  std::string from;
  std::string root;
};

struct Template {
  std::string_view name;
  const char* text;
};

// Files that pass `validate` as they stand; every key that a first experiment changes has its comment.
constexpr Template kTemplates[] = {{"tucker", R"(# tessera train %FILE%
version: 1
name: %NAME%
seed: 1
data: {name: glyphs, batch: 64}     # mnist, fashion-mnist, cifar10, cifar100 need `root: <folder>`
model: {name: resnet8}              # tessera plan %FILE% prints it layer by layer
optimizer: {name: sgd, lr: 0.1, momentum: 0.9, nesterov: true, weight_decay: 5.0e-4}
schedule: {name: cosine, warmup: 1e} # durations: 10e epochs, 500s steps, 20% of the stage
stages:
  - {name: dense, train: 4e}
  - name: tucker
    factorise: {layers: "layer[23].*.conv*", format: tucker2, ranks: {macs: 0.4}}  # tessera layers %FILE% lists what matches
    train: 2e
    optimizer: {lr: 0.02}            # this stage's own; the other keys stay
checkpoint: {every: 1e, keep: 3}
report: {latency: {batch: [1, 32]}}
)"},
                                   {"image-folder-tucker", R"(# tessera train %FILE%
# Your own images, JPEG or PNG: <root>/train/<class>/*.jpg and <root>/test/<class>/*.jpg, the same classes in both.
# tessera data check %FILE% counts them, finds broken files and images that are in train and in test.
version: 1
name: %NAME%
seed: 1
data:
  name: image-folder
  root: %ROOT%        # relative to this file
  train: train        # folders below root; their sub-folders are the classes
  test: test          # read by `tessera table` alone
  val: 0.1            # share of train held out for validation, or the name of a folder
  resize: 256         # pixels of the shorter side
  crop: 224           # side of the square that the network sees; at most resize
  mean: auto          # measured on the training images; [0.485, 0.456, 0.406] are ImageNet's
  std: auto           # [0.229, 0.224, 0.225]
  on_bad_image: error # skip decodes every file before training and leaves out those that fail
  batch: %BATCH%           # at most the number of training images
  augment: [{resized_crop: 0.25}, {flip: horizontal}]  # {crop: random} moves the square only; evaluation takes the centre
model: {name: resnet18, classes: %CLASSES%}  # as many as class folders; tessera plan %FILE% prints it layer by layer
optimizer: {name: sgd, lr: 0.02, momentum: 0.9, nesterov: true, weight_decay: 1.0e-4}
schedule: {name: cosine, warmup: 1e} # durations: 10e epochs, 500s steps, 20% of the stage
stages:
  - {name: dense, train: 30e}
  - name: tucker
    factorise: {layers: "layer[34].*.conv*", format: tucker2, ranks: {macs: 0.4}}  # tessera layers %FILE% lists what matches
    train: 10e
    optimizer: {lr: 0.002}           # this stage's own; the other keys stay
checkpoint: {every: 1e, keep: 3}
report: {latency: {batch: [1, 32]}}
)"}};

// --from, or the experiment's name when it is a template's, or the first.
const Template& choose_template(const InitArguments& arguments) {
  const std::string wanted = arguments.from.empty() ? fs::path(arguments.name).filename().string() : arguments.from;
  for (const Template& item : kTemplates) {
    if (item.name == wanted) return item;
  }
  TESSERA_CHECK(arguments.from.empty(), ConfigError, "--from: unknown template '", wanted, "'; known: ", kTemplates[0].name, ", ",
                kTemplates[1].name);
  return kTemplates[0];
}

std::string replace_all(std::string text, const std::string& mark, const std::string& value) {
  for (std::size_t at = text.find(mark); at != std::string::npos; at = text.find(mark, at + value.size())) {
    text.replace(at, mark.size(), value);
  }
  return text;
}

struct Counts {
  std::size_t classes = 2;
  std::size_t batch = 32;  // at most what is left of root/train after `val: 0.1`
};

Counts count_images(const std::string& root) {
  try {
    const ImageListing listing = list_images(fs::path(root) / "train");
    std::vector<std::size_t> counts(listing.classes.size());
    for (const ImageFile& file : listing.files) ++counts[static_cast<std::size_t>(file.label)];
    std::size_t left = 0;
    for (const std::size_t count : counts) left += count - (count + 5) / 10;  // rounded class by class, as the split is
    return {listing.classes.size(), std::bit_floor(std::clamp<std::size_t>(left, 1, 32))};
  } catch (const IoError& error) {
    throw ConfigError(str("--root: ", error.what()));
  }
}

// A YAML text that means the path whatever is in it; ${ would be a variable.
std::string quoted_path(const fs::path& path) { return replace_all(to_json(Value(path.string())), "${", "$${"); }

int init(const InitArguments& arguments) {
  const std::string file = arguments.name + ".yaml";
  TESSERA_CHECK(!real_vfs().exists(file), ConfigError, file, " exists already; it is left as it is");
  const Template& chosen = choose_template(arguments);
  std::string text = chosen.text;
  const bool takes_root = text.find("%ROOT%") != std::string::npos;
  TESSERA_CHECK(takes_root || arguments.root.empty(), ConfigError, "--root: template ", chosen.name, " reads no files");
  if (takes_root) {
    const std::string root = arguments.root.empty() ? std::string("images") : arguments.root;
    const Counts counts = arguments.root.empty() ? Counts() : count_images(root);
    text = replace_all(std::move(text), "%CLASSES%", str(counts.classes));
    text = replace_all(std::move(text), "%BATCH%", str(counts.batch));
    const fs::path shown =
        arguments.root.empty() ? fs::path(root) : fs::absolute(root).lexically_proximate(fs::absolute(file).parent_path());
    text = replace_all(std::move(text), "%ROOT%", quoted_path(shown));
  }
  text = replace_all(std::move(text), "%FILE%", file);
  write_file_atomically(real_vfs(), file, replace_all(std::move(text), "%NAME%", fs::path(arguments.name).filename().string()));
  std::cout << "wrote " << file << "\nnext: tessera " << (takes_root ? "data check " : "validate ") << file << '\n';
  return kDone;
}

}  // namespace

void add_init(Verb program) {
  const Verb verb = program.add("init", "Write a commented experiment file to start from");
  auto arguments = std::make_shared<InitArguments>();
  verb.argument("name", arguments->name, "name of the experiment, or a path that ends in it; the file is <name>.yaml")
      .required();
  verb.argument("--from", arguments->from,
                   "template: tucker or image-folder-tucker (default: the one that the experiment is named after, else tucker)");
  verb.argument("--root", arguments->root, "image-folder-tucker: folder that holds train/ and test/; its classes are counted");
  verb.footer("Examples: tessera init my-first\n          tessera init pets --from image-folder-tucker --root ~/photos");
  verb.runs([arguments] { return init(*arguments); });
}

}  // namespace tessera::cli
