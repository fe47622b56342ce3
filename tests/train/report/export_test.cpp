#include "train/report/export.h"

#include <gtest/gtest.h>

#include "core/support/error.h"
#include "tests/core/io/temporary_folder.h"
#include "tests/support/message_of.h"
#include "tests/train/run/weights_files.h"
#include "train/config/yaml.h"
#include "train/run/import_weights.h"
#include "train/run/saved_model.h"
#include "train/run/saved_point.h"
#include "train/run/session.h"
#include "train/torch/torch_layout.h"

namespace tessera {
namespace {

// The ranks of the core equal the size of its kernel, so that every axis of the core has size 3.
constexpr const char* kFactored = R"([
  {"tucker2_conv2d": {"out": 4, "kernel": 3, "rank_in": 3, "rank_out": 3, "name": "conv"}}, "relu",
  {"max_pool2d": {"kernel": 2}}, "flatten", {"batch_norm": {"name": "bn"}}, {"linear": {"out": 5, "name": "fc"}}])";
constexpr const char* kNormed = R"([
  {"svd_conv2d": {"out": 3, "rank": 2, "batch_norm": true, "name": "conv"}}, "relu", "global_avg_pool"])";
const Shape kInput{1, 6, 6, 4};  // 4x4x4 after the convolution, 2x2x4 after the pool

std::unique_ptr<Module> factored() {
  auto model = build_model(testing::layers_config(kFactored), kInput);
  testing::randomise(*model);
  return model;
}

std::string refusal(const std::string& layers, const Shape& input) {
  return message_of<ConfigError>([&] { torch_tensors(*build_model(testing::layers_config(layers), input), input); });
}

TEST(Export, WritesPyTorchsNamesAndAxes) {
  const TemporaryFolder folder;
  const auto model = factored();
  export_torch(real_vfs(), *model, kInput, Value::map(), folder.path() / "new" / "out");
  const auto path = folder.path() / "new" / "out" / kExportWeights;
  const SafetensorsFile file = decode_safetensors(real_vfs().read_file(path), "export");
  EXPECT_EQ(file.metadata.at("tessera.layout"), "OIHW");
  std::map<std::string, Shape> shapes;
  for (const auto& [name, tensor] : file.tensors) shapes.emplace(name, tensor.shape());
  EXPECT_EQ(shapes, (std::map<std::string, Shape>{{"bn.bias", {16}},
                                                  {"bn.running_mean", {16}},
                                                  {"bn.running_var", {16}},
                                                  {"bn.weight", {16}},
                                                  {"conv.0.weight", {3, 4, 1, 1}},
                                                  {"conv.1.weight", {3, 3, 3, 3}},
                                                  {"conv.2.bias", {4}},
                                                  {"conv.2.weight", {4, 3, 1, 1}},
                                                  {"fc.bias", {5}},
                                                  {"fc.weight", {5, 16}}}));
  const Tensor core = model_state(*model).tensors.at("conv.core");
  EXPECT_EQ(file.tensors.at("conv.1.weight").to_vector<float>(), core.permute({0, 3, 1, 2}).contiguous().to_vector<float>());
  const std::vector<float> ours = model_state(*model).tensors.at("bn.weight").to_vector<float>();
  const std::vector<float> torch = file.tensors.at("bn.weight").to_vector<float>();
  for (std::size_t channel = 0; channel < 4; ++channel) {
    for (std::size_t pixel = 0; pixel < 4; ++pixel) EXPECT_EQ(torch[channel * 4 + pixel], ours[pixel * 4 + channel]);
  }
}

TEST(Export, NormsBetweenFiltersArePartsOfTheirSequential) {
  const TemporaryFolder folder;
  const auto model = build_model(testing::layers_config(kNormed), kInput);
  testing::randomise(*model);
  export_torch(real_vfs(), *model, kInput, Value::map(), folder.path());
  const auto path = folder.path() / kExportWeights;
  std::map<std::string, Shape> shapes;
  for (const auto& [name, tensor] : decode_safetensors(real_vfs().read_file(path), "export").tensors) {
    shapes.emplace(name, tensor.shape());
  }
  EXPECT_EQ(shapes, (std::map<std::string, Shape>{{"conv.0.weight", {2, 4, 1, 1}},
                                                  {"conv.1.bias", {2}},
                                                  {"conv.1.running_mean", {2}},
                                                  {"conv.1.running_var", {2}},
                                                  {"conv.1.weight", {2}},
                                                  {"conv.2.bias", {3}},
                                                  {"conv.2.weight", {3, 2, 1, 1}}}));
  ModelConfig config = testing::layers_config(kNormed);
  config.classes = 3;
  config.weights = path.string();
  const InitialModel imported = initial_model(real_vfs(), config, kInput, 1);
  const State before = model_state(*model), after = model_state(*imported.model);
  ASSERT_EQ(before.tensors.size(), after.tensors.size());
  for (const auto& [name, tensor] : before.tensors) {
    EXPECT_EQ(tensor.to_vector<float>(), after.tensors.at(name).to_vector<float>()) << name;
  }
}

TEST(Export, ComesBackThroughImport) {
  const TemporaryFolder folder;
  const auto model = factored();
  export_torch(real_vfs(), *model, kInput, Value::map(), folder.path());
  ModelConfig config = testing::layers_config(kFactored);
  config.weights = (folder.path() / kExportWeights).string();
  const auto back = initial_model(real_vfs(), config, kInput, 1).model;
  const State expected = model_state(*model);
  for (const auto& [name, tensor] : model_state(*back).tensors) {
    EXPECT_EQ(tensor.to_vector<float>(), expected.tensors.at(name).to_vector<float>()) << name;
  }
}

TEST(Export, DescribesTheNetworkForNchwImages) {
  const TemporaryFolder folder;
  Value origin = Value::map();
  origin.set("stage", "dense");
  export_torch(real_vfs(), *build_model(named_model("lenet5"), {1, 32, 28, 3}), {1, 32, 28, 3}, origin, folder.path());
  const Value json = parse_json(real_vfs().read_file(folder.path() / kExportModel), "model.json");
  EXPECT_EQ(to_json(json.at("input")), "[3,32,28]");
  EXPECT_EQ(json.at("format_version").as_int(), 1);
  EXPECT_EQ(json.at("weights").as_string(), kExportWeights);
  EXPECT_EQ(json.at("origin").at("stage").as_string(), "dense");
  EXPECT_EQ(json.at("network").at("children").as_list().front().at("name").as_string(), "conv1");
}

TEST(Export, NeverReplacesAFile) {
  const TemporaryFolder folder;
  write_file_atomically(real_vfs(), folder.path() / kExportModel, "mine");
  try {
    export_torch(real_vfs(), *factored(), kInput, Value::map(), folder.path());
    ADD_FAILURE() << "nothing thrown";
  } catch (const ConfigError& error) {
    EXPECT_EQ(error.what(), str("export: ", (folder.path() / kExportModel).string(), " is there already; give another folder"));
  }
  EXPECT_EQ(real_vfs().read_file(folder.path() / kExportModel), "mine");
  EXPECT_FALSE(real_vfs().exists(folder.path() / kExportWeights));
}

TEST(Export, TakesTheAveragesInsideAStageWithAverages) {
  const TemporaryFolder folder;
  const RunFolder run = RunFolder::create(real_vfs(), folder.path().string(), "x");
  const std::string text = R"(version: 1
name: x
threads: {compute: 1, loader: 0}
data: {name: glyphs, count: 40, test_count: 10, batch: 20, val: 0}
model: {name: layers, layers: [flatten, {linear: {out: 10, name: fc}}]}
checkpoint: {every: 1s, async: false}
stages: [{name: only, train: 3s, ema: {decay: 0.5}}]
)";
  const Experiment experiment = parse_experiment(parse_yaml(text, "x.yaml"));
  ASSERT_EQ(Session::start(real_vfs(), experiment, load_inputs(real_vfs(), experiment.config), text, run, {}).run(),
            RunOutcome::finished);
  std::filesystem::remove_all(std::filesystem::path(run.checkpoints()) / "step-00000003");
  const Checkpoint inside = load_newest(real_vfs(), run);
  ASSERT_TRUE(has_averages(inside));
  const auto weights = [](Module& model) { return model_state(model).tensors.at("fc.weight").to_vector<float>(); };
  const NetworkToExport network = network_to_export(real_vfs(), run.path());
  EXPECT_EQ(weights(*network.model), weights(*evaluation_model(inside)));
  EXPECT_NE(weights(*network.model), weights(*saved_model(inside)));
}

TEST(TorchLayout, PermutesTheClassifiersOfLeNetAndVgg) {
  const auto flattened = [](const ModelConfig& config, const Shape& input) {
    std::map<std::string, std::int64_t> channels;
    for (const TorchTensor& tensor : torch_tensors(*build_model(config, input), input)) {
      if (tensor.axes == TorchAxes::flattened) channels[tensor.name] = tensor.channels;
    }
    return channels;
  };
  using Channels = std::map<std::string, std::int64_t>;
  EXPECT_EQ(flattened(named_model("lenet5"), {1, 28, 28, 1}), (Channels{{"fc1.weight", 16}}));
  EXPECT_EQ(flattened(named_model("vgg16"), {1, 224, 224, 3}), (Channels{{"classifier.0.weight", 512}}));
  EXPECT_EQ(flattened(named_model("vgg16"), {1, 32, 32, 3}), Channels{}) << "a global average flattens nothing";
  EXPECT_EQ(flattened(named_model("mlp"), {1, 28, 28, 1}), Channels{}) << "one channel has one order";
  EXPECT_EQ(flattened(named_model("mlp"), {1, 28, 28, 3}), (Channels{{"fc1.weight", 3}}));
}

TEST(TorchLayout, RefusesWhatPyTorchWouldComputeOtherwise) {
  EXPECT_EQ(refusal(R"([{"linear": {"out": 2, "name": "fc"}}, "global_avg_pool"])", {1, 4, 4, 3}),
            "layer 'fc' (linear) has no form in PyTorch's layout: it acts on the channels of an image; use a 1x1 convolution");
  EXPECT_EQ(refusal(R"(["flatten", {"tt_linear": {"out": 4, "name": "fc"}}])", {1, 4, 4, 3}),
            "layer 'fc' (tt_linear) has no form in PyTorch's layout: it follows a flattened image, whose features PyTorch orders "
            "otherwise");
  EXPECT_EQ(refusal(R"([{"layer_norm": {"name": "ln"}}, "global_avg_pool"])", {1, 4, 4, 3}),
            "layer 'ln' (layer_norm) has no form in PyTorch's layout: it normalises the channels of an image");
  EXPECT_EQ(refusal(R"([{"conv2d": {"out": 2, "kernel": 3}}, "flatten"])", {1, 4, 4, 3}),
            "layer '' (sequential) has no form in PyTorch's layout: it ends in a flattened image, whose features PyTorch has in "
            "another order");
}

}  // namespace
}  // namespace tessera
