// Imported and exported networks give PyTorch's logits. The PyTorch side is tests/oracle/torch_networks.py.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <sstream>

#include "compress/factorise.h"
#include "compress/pass_runner.h"
#include "compress/prune/prune.h"
#include "compress/shrink.h"
#include "compress/sparsify.h"
#include "core/autograd/var.h"
#include "core/config/read.h"
#include "layers/conv2d.h"
#include "layers/tucker2_conv2d.h"
#include "tests/core/io/temporary_folder.h"
#include "tests/support/python.h"
#include "tests/support/scopes.h"
#include "tests/train/data/image_tree.h"
#include "tests/train/run/weights_files.h"
#include "train/config/yaml.h"
#include "train/data/builtin.h"
#include "train/data/labelled_images.h"
#include "train/report/export.h"
#include "train/run/import_weights.h"
#include "train/run/saved_model.h"
#include "train/run/saved_point.h"
#include "train/run/session.h"
#include "train/run/stage_trainer.h"
#include "train/tasks/classification.h"

namespace tessera {
namespace {

const Classification kTask;

// Single precision over tens of layers with thousands of terms each. Logits are of the order of 1.
constexpr double kTolerance = 1e-4;

class TorchOracle : public ::testing::Test {
 protected:
  void SetUp() override {
    python_ = testing::python_with("torch, torchvision");
    if (python_.empty()) GTEST_SKIP() << "python3 with torch and torchvision is not installed";
  }

  void run_torch(const std::string& kind) const {
    EXPECT_EQ(testing::output_of(python_ + " " TESSERA_ORACLE_FOLDER "/torch_networks.py " + kind + " " +
                                 folder_.path().string() + " 2>&1"),
              "");
  }
  Tensor tensor(const std::string& name) const {
    return decode_safetensors(real_vfs().read_file(folder_.path() / (name + ".safetensors")), name).tensors.at(name);
  }

  // The file's y must equal the model's output for its x.
  void expect_same_logits(Module& model) const {
    const NoGrad no_grad;
    const Tensor ours = model.forward(Var(tensor("x")), {}).value();
    const Tensor theirs = tensor("y");
    ASSERT_EQ(ours.shape(), theirs.shape());
    const std::vector<float> a = ours.contiguous().to_vector<float>();
    const std::vector<float> b = theirs.to_vector<float>();
    float largest = 0;
    for (std::size_t i = 0; i < a.size(); ++i) {
      EXPECT_NEAR(a[i], b[i], kTolerance) << "logit " << i;
      largest = std::max(largest, std::abs(b[i]));
    }
    EXPECT_GT(largest, 0.01f) << "logits near zero prove nothing";
  }

  // The exported files in PyTorch must give this model's logits, on this input or on random images of this shape.
  void expect_same_logits_exported(Module& model, const Tensor& x, const std::string& kind = "exported") const {
    export_torch(real_vfs(), model, x.shape(), Value::map(), folder_.path());
    testing::save(folder_.path() / "x.safetensors", {.tensors = {{"x", x}}, .metadata = {}});
    run_torch(kind);
    expect_same_logits(model);
  }
  void expect_same_logits_exported(Module& model, const Shape& input, const std::string& kind = "exported") const {
    expect_same_logits_exported(model, testing::random_input(input), kind);
  }

  // Exports a network of 23 tokens that begins with this table.
  void expect_table_exported(const std::string& table) const {
    const Shape input{3, 5};
    const auto model = build_model(
        testing::layers_config(str("[", table, R"(, {"linear": {"out": 4}}, "flatten", {"linear": {"out": 7}}])")), input);
    for (const NamedParameter& entry : named_parameters(*model)) {
      fill_normal(entry.parameter->value(), RngStream(9, entry.path, "test"), 0, 0.5);
    }
    expect_same_logits_exported(
        *model, Tensor::from(std::vector<std::int64_t>{0, 22, 7, 7, 3, 21, 1, 2, 12, 11, 10, 9, 0, 22, 20}, input));
    const std::string shown = testing::output_of(python_ + " " TESSERA_LOADER " " + folder_.path().string() + " 2>&1");
    EXPECT_TRUE(shown.ends_with("output: [1, 7]\n")) << shown;
  }

  // The exported network, run on image files, must agree with the model on the samples that our program reads from them.
  void expect_classified(Module& model, const Subset& images, const Value& data) const {
    const std::vector<std::string> classes = class_names(data);
    const NoGrad no_grad;
    for (const std::int64_t sample : images.indices) {
      const Batch batch = Batch::empty(images.dataset->fields(), 1);
      images.dataset->assemble(std::span(&sample, 1), std::nullopt, batch);
      const std::vector<float> logits = model.forward(Var(batch.at("image")), {}).value().to_vector<float>();
      double sum = 0;
      for (const float logit : logits) sum += std::exp(logit);
      const std::string path = images.dataset->origin(sample);
      std::istringstream told(
          testing::output_of(str(python_, " " TESSERA_CLASSIFY " ", folder_.path().string(), ' ', path, " 2>&1")));
      std::string word;
      ASSERT_TRUE(told >> word && word == path + ':') << told.str();
      for (std::size_t i = 0; i < classes.size(); ++i) {
        double probability = 0;
        ASSERT_TRUE(told >> word >> probability) << told.str();
        told.ignore(1, ',');
        const auto named = std::ranges::find(classes, word);
        ASSERT_NE(named, classes.end()) << told.str();
        EXPECT_NEAR(probability, std::exp(logits[static_cast<std::size_t>(named - classes.begin())]) / sum, 2e-4) << told.str();
      }
    }
  }

  TemporaryFolder folder_;
  std::string python_;
};

TEST_F(TorchOracle, TorchvisionsResNet18GivesItsLogitsHereAndBack) {
  run_torch("resnet18");
  const Shape input{2, 64, 64, 3};
  const ModelConfig config{
      .form = models::ImageNetResNet{.name = "resnet18"}, .classes = 7, .weights = (folder_.path() / "w.safetensors").string()};
  const InitialModel initial = initial_model(real_vfs(), config, input, 1);
  EXPECT_NE(initial.imported.find("102 tensors"), std::string::npos) << initial.imported;
  EXPECT_NE(initial.imported.find("20 num_batches_tracked ignored"), std::string::npos) << initial.imported;
  expect_same_logits(*initial.model);
  expect_same_logits_exported(*initial.model, input, "torchvision");
}

TEST_F(TorchOracle, AResNet18IsGivenANewHeadFactorisedFineTunedAndExported) {
  run_torch("resnet18");
  const Shape input{2, 32, 32, 3};
  ModelConfig config{
      .form = models::ImageNetResNet{.name = "resnet18"}, .classes = 5, .weights = (folder_.path() / "w.safetensors").string()};
  config.head = std::string("reset");
  std::unique_ptr<Module> model = initial_model(real_vfs(), config, input, 1).model;
  // The ranks equal the kernel size, so that only the metadata tells the axes of the core apart.
  FactorisePass pass(
      tessera::read<FactoriseConfig>(parse_json(R"({"layers": "layer1.*.conv2", "ranks": {"out": 3, "in": 3}})", "test")));
  ASSERT_EQ(run_pass(model, pass, input).layers.size(), 2u);
  const Tensor before = model_state(*model).tensors.at("layer1.0.conv2.core").clone();
  TrainingConfig training;
  training.optimizer.form = SgdConfig{.lr = 1e-5};  // random weights and statistics are no trained network: small steps
  StageTrainer trainer(*model, training, kTask, 1, 3, 3);
  for (std::int64_t step = 0; step < 3; ++step) {
    trainer.step({{"image", testing::random_input(input)}, {"label", Tensor::from<std::int64_t>({1, 4}, {2})}}, step, step);
  }
  trainer.check_finite();
  EXPECT_NE(model_state(*model).tensors.at("layer1.0.conv2.core").to_vector<float>(), before.to_vector<float>());
  expect_same_logits_exported(*model, input);
}

TEST_F(TorchOracle, ASparseNetworkIsExportedWithItsMasks) {
  const Shape input{2, 32, 32, 3};
  ModelConfig config = named_model("resnet8", 5);
  std::unique_ptr<Module> model = initial_model(real_vfs(), config, input, 1).model;
  prune_to_target(tessera::read<PruneConfig>(parse_json(R"({"sparsity": {"target": 0.8}})", "test")), *model);
  SparsifyPass pass(tessera::read<SparsifyConfig>(parse_json(R"({"layers": "layer[12].*"})", "test")));
  ASSERT_EQ(run_pass(model, pass, input).layers.size(), 4u) << "of the blocks; those of layer3 keep their masks";
  expect_same_logits_exported(*model, input, "masked");
}

TEST_F(TorchOracle, SparseFactorsAreExportedAsTheFactoredLayerIs) {
  const Shape input{2, 32, 32, 3};
  ModelConfig config = named_model("resnet8", 5);
  std::unique_ptr<Module> model = initial_model(real_vfs(), config, input, 1).model;
  for (const bool norm : {false, true}) {
    const std::string path = norm ? "layer2.0.conv2" : "layer1.0.conv1";
    const auto& dense = dynamic_cast<const Conv2d&>(find_module(*model, path));
    auto factored = std::make_unique<Tucker2Conv2d>(
        Tucker2Conv2dConfig{.conv = dense.options(), .rank_in = 5, .rank_out = 7, .batch_norm = norm});
    replace_module(model, path, std::move(factored));
  }
  initialize(*model, 1);
  prune_to_target(tessera::read<PruneConfig>(parse_json(R"({"sparsity": {"target": 0.8}})", "test")), *model);
  SparsifyPass pass(tessera::read<SparsifyConfig>(parse_json(R"({"layers": ["layer1.0.conv1", "layer2.0.conv2"]})", "test")));
  run_pass(model, pass, input);
  ASSERT_EQ(find_module(*model, "layer2.0.conv2.4").kind(), "sparse_conv2d");
  expect_same_logits_exported(*model, input, "masked");
}

std::unique_ptr<Module> with_pruned_channels(const ModelConfig& config, const Shape& input) {
  std::unique_ptr<Module> model = initial_model(real_vfs(), config, input, 1).model;
  const char* const block = R"({"layers": "re:(?!fc).*", "pattern": "channel", "coupled": true, "sparsity": {"target": 0.5}})";
  prune_to_target(tessera::read<PruneConfig>(parse_json(block, "test")), *model);
  return model;
}

void shrink(std::unique_ptr<Module>& model, const Shape& input) {
  ShrinkPass pass(ShrinkConfig{});
  const PassReport report = run_pass(model, pass, input);
  EXPECT_LT(report.after.parameters, report.before.parameters / 2);
}

TEST_F(TorchOracle, PrunedChannelsAreExportedWithTheMasksOfTheirNorms) {
  const Shape input{2, 32, 32, 3};
  const auto model = with_pruned_channels(named_model("resnet8", 5), input);
  expect_same_logits_exported(*model, input, "masked");
}

TEST_F(TorchOracle, AShrunkResNetIsExportedAsItIs) {
  const Shape input{2, 32, 32, 3};
  auto model =
      with_pruned_channels({.form = models::CifarResNet{.name = "resnet8", .shortcut = "projection"}, .classes = 5}, input);
  shrink(model, input);
  expect_same_logits_exported(*model, input);
}

TEST_F(TorchOracle, AShrunkMobileNetIsExportedAsItIs) {
  const Shape input{2, 32, 32, 3};
  auto model = with_pruned_channels({.form = models::MobileNetV1{.width = 0.25}, .classes = 5}, input);
  shrink(model, input);
  expect_same_logits_exported(*model, input);
}

// The images are grey, turned by EXIF, CMYK, grey with alpha, RGBA and plain; one ends early.
void write_images(const testing::ImageTree& tree, const std::string& folder) {
  const auto pixels = [](std::int64_t channels) { return testing::Bytes(static_cast<std::size_t>(40 * 36 * channels), 90); };
  tree.write(folder + "/grey.jpg", testing::encode_jpeg(40, 36, pixels(1), {.kind = testing::JpegKind::grey}));
  tree.write(folder + "/turned.jpg",
             testing::encode_jpeg(40, 36, testing::pattern(40, 36), {.tiff = testing::orientation_tiff(6)}));
  tree.write(folder + "/cmyk.jpg", testing::encode_jpeg(40, 36, pixels(4), {.kind = testing::JpegKind::cmyk}));
  tree.write(folder + "/alpha.png", testing::encode_png(40, 36, pixels(2), {.kind = testing::PngKind::grey_alpha}));
  tree.write(folder + "/rgba.png", testing::encode_png(40, 36, pixels(4), {.kind = testing::PngKind::rgba}));
  const std::string plain = testing::encode_png(40, 36, testing::pattern(40, 36));
  tree.write(folder + "/plain.png", plain);
  tree.write(folder + "/broken.png", plain.substr(0, plain.size() / 2));
}

TEST_F(TorchOracle, AResNet18FineTunesOnAFolderOfImagesAndGoesBackToPyTorch) {
  run_torch("resnet18");
  const testing::ImageTree tree;
  for (const char* folder : {"train/cat", "train/dog", "test/cat", "test/dog"}) write_images(tree, folder);
  const testing::VariableScope cache("TESSERA_CACHE", tree.path("cache"));
  // Algorithms chosen by a clock would round differently in each run. With random weights and statistics and images of one
  // colour, a larger step amplifies that until the logits have any size.
  const Experiment experiment =
      parse_experiment(parse_yaml(str(R"(
version: 1
name: chain
deterministic: true
data: {name: image-folder, root: )",
                                      tree.root(), R"(, val: 0, resize: 36, crop: 32, batch: 4, on_bad_image: skip}
model: {name: resnet18, classes: 2, head: reset, weights: )",
                                      (folder_.path() / "w.safetensors"), R"(}
optimizer: {name: sgd, lr: 1.0e-6}
stages:
  - {name: tucker, factorise: {keep: always, layers: "layer1.*.conv2", ranks: {out: 3, in: 3}}, train: 2e}
)"),
                                  "chain.yaml"));
  const RunFolder run = RunFolder::create(real_vfs(), tree.path("runs"), "chain");
  ASSERT_EQ(Session::start(real_vfs(), experiment, load_inputs(real_vfs(), experiment.config), "", run, {}).run(),
            RunOutcome::finished);
  const Checkpoint trained = load_newest(real_vfs(), run);
  EXPECT_EQ(trained.step, 1 + 2 * 3) << "a factorisation, and two epochs of twelve good images";
  const std::unique_ptr<Module> model = saved_model(trained);
  const NetworkToExport network = network_to_export(real_vfs(), run.path());
  export_torch(real_vfs(), *network.model, network.input, network.origin, folder_.path(), network.use->data);
  expect_classified(*model, load_data(experiment.config.data, 1).test, network.use->data);
  testing::save(folder_.path() / "x.safetensors", {.tensors = {{"x", testing::random_input({2, 32, 32, 3})}}, .metadata = {}});
  run_torch("exported");
  expect_same_logits(*model);
}

TEST_F(TorchOracle, NetworksOfImagesOfOneSizeClassifyNoOthers) {
  const auto model = build_model(named_model("lenet5", 10), {1, 28, 28, 1});
  testing::randomise(*model);
  const Value data = parse_json(R"({"classes": ["a"], "preprocessing": {"mean": [0.5], "std": [0.5]}})", "test");
  export_torch(real_vfs(), *model, {1, 28, 28, 1}, Value::map(), folder_.path(), data);
  const testing::ImageTree tree;
  tree.write("wide.png", testing::encode_png(28, 30, testing::pattern(28, 30)));
  EXPECT_EQ(
      testing::output_of(str(python_, " " TESSERA_CLASSIFY " ", folder_.path().string(), ' ', tree.path("wide.png"), " 2>&1")),
      tree.path("wide.png") + ": is 28x30 pixels; the network takes 28x28\nexit status 256");
}

TEST_F(TorchOracle, FlattenedMapsFeedTheirLinearLayers) {
  const Shape input{3, 28, 28, 1};
  const auto model = build_model(named_model("lenet5", 10), input);
  testing::randomise(*model);
  expect_same_logits_exported(*model, input);
  const std::string shown = testing::output_of(python_ + " " TESSERA_LOADER " " + folder_.path().string() + " 2>&1");
  EXPECT_NE(shown.find("(fc3): Linear(in_features=84, out_features=10, bias=True)"), std::string::npos) << shown;
  EXPECT_TRUE(shown.ends_with("output: [1, 10]\n")) << shown;
}

TEST_F(TorchOracle, EveryKindOfLayerIsExported) {
  const Shape input{3, 13, 11, 3};
  const auto model = build_model(testing::layers_config(R"([
      {"conv2d": {"out": 6, "kernel": [3, 5], "stride": [2, 1], "padding": [1, 2], "groups": 3, "name": "a"}},
      {"gelu": {"form": "tanh"}},
      {"conv2d": {"out": 6, "kernel": 3, "padding": 2, "dilation": 2, "bias": false, "name": "b"}},
      {"batch_norm": {"eps": 0.01}}, "silu",
      {"avg_pool2d": {"kernel": 3, "stride": 2, "padding": 1}}, "sigmoid",
      {"tucker2_conv2d": {"out": 5, "kernel": 2, "stride": [1, 2], "padding": 1, "rank_in": 2, "rank_out": 3, "bias": false}},
      {"tucker2_conv2d": {"out": 6, "rank_in": 5, "rank_out": 4, "in_factor": false}},
      {"tucker2_conv2d": {"out": 5, "padding": 1, "rank_in": 2, "rank_out": 5, "out_factor": false}},
      {"tucker2_conv2d": {"out": 4, "padding": 1, "rank_in": 5, "rank_out": 4, "in_factor": false, "out_factor": false}}, "tanh",
      {"svd_conv2d": {"out": 6, "stride": [2, 1], "padding": [1, 0], "rank": 3}},
      {"svd_conv2d": {"out": 4, "rank": 2, "bias": false}},
      {"max_pool2d": {"kernel": 2}}, {"dropout": {"p": 0.3}}, "flatten", {"svd_linear": {"out": 9, "rank": 3}}, {"layer_norm": {}},
      "gelu", {"svd_linear": {"out": 7, "rank": 2, "bias": false}}, "relu", {"linear": {"out": 4}}])"),
                                 input);
  testing::randomise(*model);
  expect_same_logits_exported(*model, input);
}

TEST_F(TorchOracle, EveryFormatOfConvolutionsAndRowsIsExported) {
  const Shape input{2, 17, 19, 3};
  const auto model = build_model(testing::layers_config(R"([
      {"spatial_svd_conv2d": {"out": 5, "kernel": [3, 2], "stride": [1, 2], "padding": [1, 1], "dilation": [2, 1], "rank": 4}},
      {"spatial_svd_conv2d": {"out": 4, "padding": 1, "rank": 3, "bias": false}}, "silu",
      {"cp_conv2d": {"out": 5, "kernel": [2, 3], "padding": [1, 1], "dilation": [1, 2], "rank": 6}}, "tanh",
      {"cp_conv2d": {"out": 6, "kernel": [3, 1], "stride": [1, 2], "padding": [1, 1], "rank": 3, "bias": false}},
      {"cp_conv2d": {"out": 4, "kernel": [1, 3], "padding": [1, 1], "rank": 2}}, "tanh",
      {"tt_conv2d": {"out": 6, "kernel": [2, 3], "stride": [2, 1], "padding": 1, "ranks": [2, 3, 3, 2]}}, "tanh",
      {"tt_conv2d": {"out": 8, "padding": 1, "out_modes": [2, 2, 2], "in_modes": [3, 2], "ranks": [2, 4, 2, 2, 2], "bias": false}},
      {"tt_garipov_conv2d": {"out": 12, "kernel": [2, 3], "stride": [1, 2], "padding": 1, "dilation": [1, 2], "ranks": [4, 5]}}, "tanh",
      {"tt_garipov_conv2d": {"out": 8, "padding": 1, "out_modes": [2, 2, 1, 2], "in_modes": [2, 3, 2, 1], "ranks": [3, 4, 4, 2], "bias": false}},
      "global_avg_pool", {"tt_linear": {"out": 12, "ranks": [3]}}, "gelu",
      {"tt_linear": {"out": 6, "out_modes": [2, 1, 3], "in_modes": [3, 2, 2], "ranks": [2, 3], "bias": false}}])"),
                                 input);
  testing::randomise(*model);
  expect_same_logits_exported(*model, input);
}

TEST_F(TorchOracle, ATableIsExported) { expect_table_exported(R"({"embedding": {"vocabulary": 23, "width": 6}})"); }

TEST_F(TorchOracle, ATableAsATrainIsExported) {
  expect_table_exported(
      R"({"tt_embedding": {"vocabulary": 23, "width": 12, "vocabulary_modes": [3, 2, 4], "width_modes": [2, 3, 2], "ranks": [4, 5]}})");
}

TEST_F(TorchOracle, NormsBetweenFiltersAreExported) {
  const Shape input{2, 17, 19, 3};
  const auto model = build_model(testing::layers_config(R"([
      {"tucker2_conv2d": {"out": 6, "kernel": [3, 2], "stride": [1, 2], "padding": [2, 1], "rank_in": 2, "rank_out": 4,
                          "batch_norm": true}},
      {"tucker2_conv2d": {"out": 5, "padding": 1, "rank_in": 6, "rank_out": 4, "in_factor": false, "bias": false,
                          "batch_norm": true}}, "tanh",
      {"spatial_svd_conv2d": {"out": 6, "kernel": [3, 2], "stride": [2, 1], "padding": [1, 1], "dilation": [1, 2], "rank": 4,
                              "batch_norm": true}}, "tanh",
      {"cp_conv2d": {"out": 5, "kernel": [2, 3], "padding": [1, 2], "rank": 6, "bias": false, "batch_norm": true}},
      {"cp_conv2d": {"out": 6, "kernel": [3, 1], "stride": [1, 2], "padding": [1, 1], "rank": 3, "batch_norm": true}}, "tanh",
      {"svd_conv2d": {"out": 4, "stride": [2, 1], "padding": [1, 0], "rank": 3, "batch_norm": true}},
      "global_avg_pool", {"linear": {"out": 6}}])"),
                                 input);
  testing::randomise(*model);
  expect_same_logits_exported(*model, input);
}

TEST_F(TorchOracle, BlocksWithoutProjectionsAreExported) {
  const Shape input{2, 9, 8, 3};
  const auto model = build_model({.form = models::CifarResNet{.name = "resnet8", .shortcut = "option_a"}, .classes = 10}, input);
  testing::randomise(*model);
  expect_same_logits_exported(*model, input);
}

}  // namespace
}  // namespace tessera
