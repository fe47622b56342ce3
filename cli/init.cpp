// init: writes a first experiment file from one of a few templates.
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
  std::string weights;
};

struct Template {
  std::string_view name;
  const char* text;
  const char* root = "";  // replaces %ROOT% if --root is not given
  // Replaces the marks whose values depend on the data at `root`, which is empty if --root is not given. Null for a template that
  // reads no files.
  std::string (*fill)(std::string text, const std::string& root) = nullptr;
  const char* weights = "";  // replaces %WEIGHTS% if --weights is not given; "" for templates without weights
};

std::string replace_all(std::string text, const std::string& mark, const std::string& value) {
  for (std::size_t at = text.find(mark); at != std::string::npos; at = text.find(mark, at + value.size())) {
    text.replace(at, mark.size(), value);
  }
  return text;
}

std::string fill_images(std::string text, const std::string& root);
std::string fill_text(std::string text, const std::string& root);

// Replaces %FOLDER% in the templates that read a folder of images.
constexpr const char* kFolderKeys = R"(  name: image-folder
  root: %ROOT%        # relative to this file
  train: train        # folders below root; their sub-folders are the classes
  test: test          # read by `tessera table` alone
  val: 0.1            # share of train held out for validation, or the name of a folder
)";

// These files pass `validate` unchanged. Every key that a first experiment changes has a comment.
constexpr Template kTemplates[] = {
    {"tucker", R"(# tessera train %FILE%
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
    factorise: {layers: "layer[23].*.conv*", format: tucker2, ranks: {macs: 0.4}}  # tessera layers %FILE% lists the layers
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
%FOLDER%  resize: 256         # pixels of the shorter side
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
    factorise: {layers: "layer[34].*.conv*", format: tucker2, ranks: {macs: 0.4}}  # tessera layers %FILE% lists the layers
    train: 10e
    optimizer: {lr: 0.002}           # this stage's own; the other keys stay
checkpoint: {every: 1e, keep: 3}
report: {latency: {batch: [1, 32]}}
)",
     "images", &fill_images},
    {"gpt-text", R"(# tessera train %FILE%, then tessera generate runs/%NAME%/1 --prompt "..." --tokens 200
# A small GPT on the bytes of your own text: no vocabulary is needed. docs/text.md has the tokenizers of words.
version: 1
name: %NAME%
seed: 1
data:
  name: text
  files: [%ROOT%]         # relative to this file; several are read one behind the other
  split: [90, 5, 5]       # per cent of the text for training, validation and test
  tokenizer: bytes
  sequence: %SEQUENCE%           # tokens that the network sees at once
  batch: 16
model: {name: gpt, layers: 4, width: 128, heads: 4, vocabulary: 256, length: %SEQUENCE%}  # tessera plan %FILE% prints it layer by layer
optimizer: {name: adamw, lr: 2.0e-3, beta2: 0.99, weight_decay: 0.1, decay_norm_bias: false}
schedule: {name: cosine, warmup: 50s, min: 1.0e-4}
clip_norm: 1
stages:
  - {name: dense, train: 600s}
  - name: svd
    factorise: {layers: "blocks.*.mlp.*", format: svd, ranks: {macs: 0.25}}  # tessera layers %FILE% lists the layers
    train: 200s
    optimizer: {lr: 5.0e-4}  # this stage's own; the other keys stay
checkpoint: {every: 200s, keep: 3}
report: {latency: {batch: [1, 16]}}
)",
     "text.txt", &fill_text},
    {"torch-tucker", R"(# tessera train %FILE%
# A network that was trained in PyTorch, on images: <root>/train/<class>/*.jpg and <root>/test/<class>/*.jpg. Its weights are a
# safetensors file, written by save_file(model.state_dict(), FILE) of the Python package safetensors.
version: 1
name: %NAME%
seed: 1
data:
%FOLDER%  resize: 256         # pixels of the shorter side, as in PyTorch
  crop: 224           # side of the square that the network sees, as in PyTorch
  mean: [0.485, 0.456, 0.406]  # as in PyTorch; these are ImageNet's
  std: [0.229, 0.224, 0.225]
  batch: %BATCH%           # at most the number of training images
model: {name: resnet18, classes: %CLASSES%, weights: %WEIGHTS%}  # tessera plan %FILE% prints it layer by layer
optimizer: {name: sgd, lr: 0.002, momentum: 0.9, weight_decay: 5.0e-4}
stages:
  - {name: dense, train: 1e}
  - {name: tucker, factorise: {layers: "layer[234].*.conv*", format: tucker2, ranks: {macs: 0.4}}}  # tessera layers %FILE%
  - {name: finetuned, train: 3e}
checkpoint: {every: 1e, keep: 3}
report: {latency: {batch: [1, 32]}}
)",
     "images", &fill_images, "model.safetensors"}};

// The template that --from names. Without --from: the template after which the experiment is named, else the first.
const Template& choose_template(const InitArguments& arguments) {
  const std::string wanted = arguments.from.empty() ? fs::path(arguments.name).filename().string() : arguments.from;
  for (const Template& item : kTemplates) {
    if (item.name == wanted) return item;
  }
  std::string known;
  for (const Template& item : kTemplates) known += str(known.empty() ? "" : ", ", item.name);
  TESSERA_CHECK(arguments.from.empty(), ConfigError, "--from: unknown template '", wanted, "'; known: ", known);
  return kTemplates[0];
}

struct Counts {
  std::size_t classes = 2;
  std::size_t batch = 32;  // at most the number of images of root/train that remain with `val: 0.1`
};

Counts count_images(const std::string& root) {
  try {
    const ImageListing listing = list_images(fs::path(root) / "train");
    std::vector<std::size_t> counts(listing.classes.size());
    for (const ImageFile& file : listing.files) ++counts[static_cast<std::size_t>(file.label)];
    std::size_t left = 0;
    for (const std::size_t count : counts) left += count - (count + 5) / 10;  // rounded per class, as in the split
    return {listing.classes.size(), std::bit_floor(std::clamp<std::size_t>(left, 1, 32))};
  } catch (const IoError& error) {
    throw ConfigError(str("--root: ", error.what()));
  }
}

std::string fill_images(std::string text, const std::string& root) {
  const Counts counts = root.empty() ? Counts() : count_images(root);
  text = replace_all(std::move(text), "%FOLDER%", kFolderKeys);
  return replace_all(replace_all(std::move(text), "%CLASSES%", str(counts.classes)), "%BATCH%", str(counts.batch));
}

// A short file gets a shorter window, so that its validation split (5 % of its bytes) holds about two windows.
std::string fill_text(std::string text, const std::string& root) {
  constexpr std::uintmax_t kSequence = 256, kShare = 40;  // 1 / 40 is half of 5 %
  std::uintmax_t sequence = kSequence;
  if (!root.empty()) {
    std::error_code failed;
    const std::uintmax_t bytes = fs::file_size(root, failed);
    TESSERA_CHECK(!failed, ConfigError, "--root: ", root, ": ", failed.message());
    sequence = std::bit_floor(std::clamp<std::uintmax_t>(bytes / kShare, 1, kSequence));
  }
  return replace_all(std::move(text), "%SEQUENCE%", str(sequence));
}

// The path as a quoted YAML string. "${" is doubled, because it would begin a variable.
std::string quoted_path(const fs::path& path) { return replace_all(to_json(Value(path.string())), "${", "$${"); }

int init(const InitArguments& arguments) {
  const std::string file = arguments.name + ".yaml";
  TESSERA_CHECK(!real_vfs().exists(file), ConfigError, file, " exists already; it is left as it is");
  const Template& chosen = choose_template(arguments);
  std::string text = chosen.text;
  const bool takes_root = chosen.fill != nullptr;
  TESSERA_CHECK(takes_root || arguments.root.empty(), ConfigError, "--root: template ", chosen.name, " reads no files");
  const bool takes_weights = *chosen.weights != '\0';
  TESSERA_CHECK(takes_weights || arguments.weights.empty(), ConfigError, "--weights: template ", chosen.name, " has none");
  TESSERA_CHECK(arguments.weights.empty() || real_vfs().exists(arguments.weights), ConfigError, "--weights: no file ",
                arguments.weights);
  // The path as the experiment file should name it.
  const auto shown = [&](const std::string& path, const char* otherwise) {
    return quoted_path(path.empty() ? fs::path(otherwise)
                                    : fs::absolute(path).lexically_proximate(fs::absolute(file).parent_path()));
  };
  if (takes_root) {
    text = chosen.fill(std::move(text), arguments.root);
    text = replace_all(std::move(text), "%ROOT%", shown(arguments.root, chosen.root));
  }
  if (takes_weights) text = replace_all(std::move(text), "%WEIGHTS%", shown(arguments.weights, chosen.weights));
  text = replace_all(std::move(text), "%FILE%", file);
  write_file_atomically(real_vfs(), file, replace_all(std::move(text), "%NAME%", fs::path(arguments.name).filename().string()));
  std::cout << "wrote " << file << "\nnext: tessera " << (takes_root ? "data check " : "validate ") << file << '\n';
  return kDone;
}

}  // namespace

void add_init(Verb program) {
  const Verb verb = program.add("init", "Write a commented experiment file to start from");
  auto arguments = std::make_shared<InitArguments>();
  verb.argument("name", arguments->name, "name of the experiment, or a path that ends in it; the file is <name>.yaml").required();
  verb.argument("--from", arguments->from,
                "template: tucker, image-folder-tucker, gpt-text or torch-tucker (default: the one that the experiment is named "
                "after, else tucker)");
  verb.argument(
      "--root", arguments->root,
      "image-folder-tucker, torch-tucker: folder that holds train/ and test/; its classes are counted. gpt-text: a text "
      "file");
  verb.argument("--weights", arguments->weights, "torch-tucker: the network's weights, a safetensors file");
  verb.footer(
      "Examples: tessera init my-first\n          tessera init pets --from image-folder-tucker --root ~/photos\n"
      "          tessera init shakespeare --from gpt-text --root input.txt\n"
      "          tessera init mine --from torch-tucker --root ~/photos --weights resnet18.safetensors");
  verb.runs([arguments] { return init(*arguments); });
}

}  // namespace tessera::cli
