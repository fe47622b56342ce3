#include "bench/named_workloads.h"

#include "core/support/error.h"
#include "layers/models/model.h"
#include "layers/models/vit.h"
#include "train/tasks/classification.h"
#include "train/tasks/next_token.h"

namespace tessera::bench {
namespace {

constexpr std::int64_t kColours = 3;

struct Images {
  std::int64_t side, classes;
};

const Task& classification() {
  static const Classification task;
  return task;
}

const Task& next_token() {
  static const NextToken task;
  return task;
}

WorkloadConfig of_images(const std::string& model, const Images& images) {
  WorkloadConfig config;
  config.model = model;
  config.shape = str(images.side, "x", images.side, "x", kColours);
  config.sample = {{"image", DType::f32, {images.side, images.side, kColours}}, {"label", DType::i64, {}, images.classes}};
  config.task = &classification();
  config.build = [model, classes = images.classes](const Shape& input) {
    return build_model(named_model(model, classes), input);
  };
  config.optimizer.form = SgdConfig{.lr = 0.05, .momentum = 0.9, .weight_decay = 5e-4};
  return config;
}

WorkloadConfig resnet20() {
  WorkloadConfig config = of_images("resnet20", {32, 10});
  config.batch = 128;
  return config;
}

WorkloadConfig imagenet_resnet(const std::string& model) {
  WorkloadConfig config = of_images(model, {224, 1000});
  config.batch = 16;
  // At a larger rate, random labels move weights so far that two orders of summation give losses that differ in the fourth digit.
  std::get<SgdConfig>(config.optimizer.form).lr = 1e-3;
  return config;
}

// The settings that all transformers have.
template <class Transformer>
Value torch_transformer(const char* name, const Transformer& config) {
  Value network = Value::map();
  network.set("name", name);
  network.set("layers", config.layers);
  network.set("width", config.width);
  network.set("heads", config.heads);
  network.set("eps", config.eps);
  return network;
}

// PyTorch's default settings, except for a learning rate that is usual for transformers.
OptimizerConfig adamw() { return {AdamWConfig{.lr = 3e-4}}; }

WorkloadConfig of_text(const std::string& model, const models::Gpt& network, std::int64_t tokens) {
  WorkloadConfig config;
  config.model = model;
  config.shape = str(tokens, " tokens");
  config.sample = {{"tokens", DType::i64, {tokens}, network.vocabulary}, {"targets", DType::i64, {tokens}, network.vocabulary}};
  config.task = &next_token();
  config.build = [network](const Shape& input) { return network.build(input); };
  config.torch = torch_gpt(network);
  config.optimizer = adamw();
  return config;
}

WorkloadConfig small_gpt() {
  WorkloadConfig config = of_text("gpt", {.layers = 4, .width = 128, .heads = 4, .vocabulary = 256, .length = 256}, 256);
  config.batch = 16;
  return config;
}

WorkloadConfig gpt2() {
  WorkloadConfig config = of_text("gpt2", gpt2_small(), 256);
  config.batch = 2;
  return config;
}

Value torch_vit(const models::Vit& config, const Images& images) {
  const std::int64_t patches = images.side / config.patch;
  Value network = torch_transformer("vit", config);
  network.set("patch", config.patch);
  network.set("channels", kColours);
  network.set("positions", patches * patches + 1);
  network.set("classes", images.classes);
  return network;
}

WorkloadConfig vit() {
  const Images images{224, 1000};
  const models::Vit network;
  WorkloadConfig config = of_images("vit", images);
  config.build = [=](const Shape& input) { return network.build(input, images.classes); };
  config.torch = torch_vit(network, images);
  config.optimizer = adamw();
  config.batch = 16;
  return config;
}

}  // namespace

models::Gpt gpt2_small() { return {}; }

Value torch_gpt(const models::Gpt& config) {
  Value network = torch_transformer("gpt", config);
  network.set("vocabulary", config.vocabulary);
  network.set("length", config.length.value_or(models::Gpt::kLength));
  return network;
}

WorkloadConfig workload_named(const std::string& model, Device device) {
  if (device.is_cuda() && (model == "resnet18" || model == "resnet50")) {
    WorkloadConfig config = imagenet_resnet(model);
    config.batch = 256;
    config.batches = 2;
    config.device = device;
    return config;
  }
  if (model == "resnet20") {
    WorkloadConfig config = resnet20();
    config.device = device;
    return config;
  }
  if (device.is_cpu() && model == "resnet18") return imagenet_resnet(model);
  if (device.is_cpu() && model == "gpt") return small_gpt();
  if (device.is_cpu() && model == "gpt2") return gpt2();
  if (device.is_cpu() && model == "vit") return vit();
  throw ConfigError(str("train_bench: --model is ", model,
                        "; needs resnet20 or resnet18, on the CPU also gpt, gpt2 or vit, on a GPU also resnet50"));
}

}  // namespace tessera::bench
