// A run that starts from trained weights, and one that is exported.
#include <gtest/gtest.h>

#include "core/io/safetensors.h"
#include "core/support/error.h"
#include "layers/models/model.h"
#include "tests/end_to_end/program.h"
#include "train/run/model_state.h"
#include "train/torch/torch_layout.h"

namespace tessera::testing {
namespace {

namespace fs = std::filesystem;

constexpr const char* kHead = R"(
version: 1
name: tuned
seed: 3
deterministic: true
threads: {compute: 1, loader: 0}
data: {name: glyphs, count: 120, test_count: 20, batch: 32, val: 0.1}
)";
constexpr const char* kTail = R"(
optimizer: {name: sgd, lr: 0.05, momentum: 0.9}
stages:
  - {name: factorised, factorise: {keep: always, layers: "layer3.*.conv2", format: tucker2, ranks: {out: 4, in: 4}}}
  - {name: finetuned, train: 3s}
checkpoint: {every: 1s, keep: 5, best: false}
log_every: 1
)";

std::string experiment(const std::string& model) { return str(kHead, "model: {name: resnet8, ", model, "}", kTail); }

class Weights : public ::testing::Test {
 protected:
  // <folder>/w.safetensors has 7 classes and PyTorch's layout. The experiments are in <folder>/configs.
  void SetUp() override {
    const Shape input{1, 28, 28, 1};
    const auto model = build_model(named_model("resnet8", 7), input);
    initialize(*model, 99);
    SafetensorsFile file;
    const State state = model_state(*model);
    for (const TorchTensor& entry : torch_tensors(*model, input)) {
      file.tensors[entry.name] = to_torch(state.tensors.at(entry.path), entry);
    }
    write_bytes(folder_ / "w.safetensors", encode_safetensors(file));
    fs::create_directory(folder_ / "configs");
    write_bytes(folder_ / "configs/x.yaml", experiment("classes: 10, weights: ../w.safetensors, head: reset"));
  }

  Outcome train(const std::string& runs, const std::vector<std::string>& environment = {}) {
    return run_program({"train", folder_ / "configs/x.yaml", "--runs", folder_ / runs}, environment);
  }
  std::string last_weights(const std::string& run) { return read_bytes(run + "/checkpoints/step-00000004/model.safetensors"); }
  SafetensorsFile tensors_at(const std::string& run, const std::string& step) {
    return decode_safetensors(read_bytes(run + "/checkpoints/" + step + "/model.safetensors"), step);
  }

  TemporaryFolder folder_;
};

TEST_F(Weights, StartsFromThemAndResumesWithoutThem) {
  const Outcome straight = train("straight");
  ASSERT_EQ(straight.exit_code, 0) << straight.output;
  EXPECT_NE(straight.output.find("w.safetensors, fc drawn anew"), std::string::npos) << straight.output;

  const Outcome killed = train("killed", {"TESSERA_KILL_AT=factorise:0"});
  ASSERT_EQ(killed.exit_code, 128 + 9) << killed.output;
  const std::string run = folder_ / "killed/tuned/1";
  const Tensor first = tensors_at(run, "step-00000000").tensors.at("conv1.weight");
  const Tensor given = decode_safetensors(read_bytes(folder_ / "w.safetensors"), "w")
                           .tensors.at("conv1.weight")
                           .permute({0, 2, 3, 1})
                           .contiguous();
  EXPECT_EQ(first.to_vector<float>(), given.to_vector<float>());

  fs::remove(folder_ / "w.safetensors");
  const Outcome resumed = run_program({"resume", run});
  ASSERT_EQ(resumed.exit_code, 0) << resumed.output;
  EXPECT_TRUE(last_weights(run) == last_weights(folder_ / "straight/tuned/1"));
}

TEST_F(Weights, DoesNotReadThemAgainWhenTheCheckpointsAreGone) {
  ASSERT_EQ(train("runs", {"TESSERA_KILL_AT=factorise:0"}).exit_code, 128 + 9);
  const std::string run = folder_ / "runs/tuned/1";
  for (const auto& entry : fs::directory_iterator(run + "/checkpoints")) fs::remove_all(entry);
  const Outcome resumed = run_program({"resume", run});
  expect_outcome(resumed, 1,
                 str(run, ": its checkpoints are gone; resume does not read model.weights (", folder_ / "w.safetensors",
                     ") again, train a new run"));
}

TEST_F(Weights, ThatDoNotFitAreRefusedBeforeARunFolder) {
  write_bytes(folder_ / "configs/x.yaml", experiment("classes: 10, weights: ../w.safetensors"));
  const Outcome outcome = train("runs");
  expect_outcome(outcome, 2, "x.yaml:8:8: model: ");
  expect_in(outcome.output, "mismatched: fc.weight is f32 [7, 64], the network needs f32 [10, 64]");
  expect_in(outcome.output, "head: reset draws the last layer anew");
  EXPECT_FALSE(fs::exists(folder_ / "runs"));

  write_bytes(folder_ / "configs/x.yaml", experiment("classes: 10, head: reset"));
  const Outcome alone = train("runs");
  expect_outcome(alone, 2, "model.head: reset needs weights");
}

TEST_F(Weights, MayComeFromTheLastCheckpointOfARun) {
  write_bytes(folder_ / "configs/dense.yaml",
              str(kHead, "model: {name: resnet8, classes: 10}\n", "stages: [{name: dense, train: 2s}]\n"));
  const Outcome dense = run_program({"train", folder_ / "configs/dense.yaml", "--runs", folder_ / "runs"});
  ASSERT_EQ(dense.exit_code, 0) << dense.output;
  write_bytes(folder_ / "configs/x.yaml", experiment("classes: 10, weights: ../runs/tuned/1"));
  const Outcome tuned = train("tuned");
  ASSERT_EQ(tuned.exit_code, 0) << tuned.output;
  const auto given = tensors_at(folder_ / "runs/tuned/1", "step-00000002").tensors;
  for (const auto& [name, tensor] : tensors_at(folder_ / "tuned/tuned/1", "step-00000000").tensors) {
    EXPECT_EQ(tensor.to_vector<float>(), given.at(name).to_vector<float>()) << name;
  }

  // A factored network has other tensors than the dense one that `model` names.
  write_bytes(folder_ / "configs/x.yaml", experiment("classes: 10, weights: ../tuned/tuned/1"));
  const Outcome factored = train("again");
  expect_outcome(factored, 2, "missing: layer3.0.conv2.weight [64, 3, 3, 64]");
  expect_in(factored.output, "unexpected: layer3.0.conv2.core [4, 3, 3, 4]");
}

TEST_F(Weights, AreExportedOnce) {
  ASSERT_EQ(train("runs").exit_code, 0);
  const std::string run = folder_ / "runs/tuned/1";
  const std::string out = folder_ / "out";
  const Outcome exported = run_program({"export", run, "--layout", "torch", "--output", out});
  EXPECT_EQ(exported.exit_code, 0);
  EXPECT_EQ(exported.output, str("wrote ", out, "/model.safetensors and ", out,
                                 "/model.json\nnext, in the folder of tessera's sources: python3 examples/python/classify.py ",
                                 out, " IMAGE...\n"));
  const SafetensorsFile file = decode_safetensors(read_bytes(out + "/model.safetensors"), "out");
  EXPECT_EQ(file.tensors.at("layer3.0.conv2.1.weight").shape(), (Shape{4, 4, 3, 3}));
  const Value json = parse_json(read_bytes(out + "/model.json"), "model.json");
  EXPECT_EQ(to_json(json.at("input")), "[1,28,28]");
  EXPECT_EQ(json.at("classes").as_list().size(), 10u);
  const Value& preprocessing = json.at("preprocessing");
  EXPECT_EQ(preprocessing.at("mean").as_list().size(), 1u);
  EXPECT_GT(preprocessing.at("std").as_list().front().as_double(), 0);
  EXPECT_EQ(preprocessing.find("resize"), nullptr) << "glyphs have the network's size";
  EXPECT_EQ(to_json(json.at("origin")), str(R"({"run":")", run, R"(","stage":"finetuned","step":4})"));

  const Outcome again = run_program({"export", run, "--output", out});
  expect_outcome(again, 2, "model.safetensors is there already");
  EXPECT_EQ(run_program({"export", run, "--layout", "caffe", "--output", folder_ / "other"}).exit_code, 2);
}

TEST_F(Weights, AreExportedToOnnxOnce) {
  ASSERT_EQ(train("runs").exit_code, 0);
  const std::string run = folder_ / "runs/tuned/1", file = folder_ / "net.onnx";
  const std::vector<std::string> words{"export", run, "--layout", "onnx", "-o", file};
  const Outcome exported = run_program(words);
  EXPECT_EQ(exported.exit_code, 0);
  EXPECT_EQ(exported.output, str("wrote ", file, "\nnext, in Python: onnxruntime.InferenceSession(\"", file, "\")\n"));
  const std::string bytes = read_bytes(file);
  for (const char* const part : {"layer3.0.conv2.core", "tessera.classes", "tessera.preprocessing", "classification"}) {
    EXPECT_NE(bytes.find(part), std::string::npos) << part;
  }
  EXPECT_EQ(bytes.find("BatchNormalization"), std::string::npos);
  expect_outcome(run_program(words), 2, "net.onnx is there already; give another file");
  const std::string kept = folder_ / "kept.onnx";
  EXPECT_EQ(run_program({"export", run, "--layout", "onnx", "--keep-batch-norm", "-o", kept}).exit_code, 0);
  EXPECT_NE(read_bytes(kept).find("BatchNormalization"), std::string::npos);
}

TEST_F(Weights, OnlyOnnxFoldsBatchNorms) {
  expect_outcome(
      run_program({"export", folder_ / "w.safetensors", "--layout", "torch", "--keep-batch-norm", "-o", folder_ / "x"}), 2,
      "--keep-batch-norm: the layout torch folds no batch norms; it is of onnx");
}

TEST_F(Weights, GoToHuggingFacesNamesAndBack) {
  const auto write_vit = [&](const std::string& keys) {
    write_bytes(folder_ / "configs/x.yaml",
                str(kHead, "model: {name: vit, layers: 2, width: 16, heads: 2, patch: 7, eps: 1.0e-12, classes: 10", keys,
                    "}\nstages: [{name: dense, train: 2s}]\n"));
  };
  write_vit("");
  ASSERT_EQ(train("runs").exit_code, 0);
  const std::string out = folder_ / "out";
  const Outcome exported = run_program({"export", folder_ / "runs/tuned/1", "--layout", "huggingface", "--output", out});
  EXPECT_EQ(exported.exit_code, 0);
  EXPECT_EQ(exported.output,
            str("wrote ", out, "/model.safetensors and ", out,
                "/config.json\nnext, in Python: transformers.ViTForImageClassification.from_pretrained(\"", out, "\")\n"));
  write_vit(", weights: ../out/model.safetensors");
  const Outcome again = train("again");
  ASSERT_EQ(again.exit_code, 0) << again.output;
  const auto given = tensors_at(folder_ / "runs/tuned/1", "step-00000002").tensors;
  for (const auto& [name, tensor] : tensors_at(folder_ / "again/tuned/1", "step-00000000").tensors) {
    EXPECT_EQ(tensor.to_vector<float>(), given.at(name).to_vector<float>()) << name;
  }
  write_vit(", weights: ../out/model.safetensors, dropout: 0.1, recompute: true");
  EXPECT_EQ(train("other").exit_code, 0);
  write_bytes(out + "/config.json", R"({"num_attention_heads": 4})");
  expect_outcome(train("third"), 2, "config.json: num_attention_heads is 4, the network's is 2");
}

}  // namespace
}  // namespace tessera::testing
