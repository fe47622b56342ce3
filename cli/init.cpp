#include <filesystem>
#include <iostream>
#include <memory>

#include "cli/verbs.h"
#include "core/error.h"
#include "core/io/vfs.h"

namespace tessera::cli {
namespace {

// A file that passes `validate` as it stands; every key that a first experiment changes has its comment.
constexpr const char* kTuckerTemplate = R"(# tessera train %FILE%
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
)";

std::string replace_all(std::string text, const std::string& mark, const std::string& value) {
  for (std::size_t at = text.find(mark); at != std::string::npos; at = text.find(mark, at + value.size())) {
    text.replace(at, mark.size(), value);
  }
  return text;
}

int init(const std::string& name) {
  const std::string file = name + ".yaml";
  TESSERA_CHECK(!real_vfs().exists(file), ConfigError, file, " exists already; it is left as it is");
  write_file_atomically(
      real_vfs(), file,
      replace_all(replace_all(kTuckerTemplate, "%FILE%", file), "%NAME%", std::filesystem::path(name).filename().string()));
  std::cout << "wrote " << file << "\nnext: tessera validate " << file << '\n';
  return kDone;
}

}  // namespace

void add_init(CLI::App& app, Run& run) {
  auto* verb = app.add_subcommand("init", "Write a commented experiment file to start from");
  auto name = std::make_shared<std::string>();
  verb->add_option("name", *name, "name of the experiment, or a path that ends in it; the file is <name>.yaml")->required();
  verb->footer("Example: tessera init my-first");
  verb->callback([name, &run] { run = [name] { return init(*name); }; });
}

}  // namespace tessera::cli
