// Which extra content files with Hugging Face's names may have, and which networks can be written with such names.
#include <gtest/gtest.h>

#include <algorithm>
#include <variant>

#include "layers/sparse_linear.h"
#include "layers/svd_linear.h"
#include "tests/train/torch/huggingface_fixtures.h"
#include "train/report/export.h"
#include "train/torch/huggingface_config.h"

namespace tessera {
namespace {

using testing::distance;
using testing::huggingface_folder;
using testing::huggingface_model;
using testing::HuggingFaceSamples;
using testing::kTolerance;
using testing::kVisible;
using testing::read_safetensors;

class HuggingFaceGpt2 : public ::testing::Test, protected testing::HuggingFaceCase {
 protected:
  HuggingFaceGpt2() : HuggingFaceCase("gpt2") {}
};

TEST_F(HuggingFaceGpt2, TakesOldFilesWithoutAPrefixAndWithTheirBuffers) {
  SafetensorsFile old;
  for (const auto& [name, tensor] : fixture().tensors) old.tensors[name.substr(std::string("transformer.").size())] = tensor;
  for (const std::string block : {"h.0.", "h.1."}) {
    old.tensors[block + "attn.bias"] = Tensor::zeros({1, 1, 24, 24});
    old.tensors[block + "attn.masked_bias"] = Tensor::scalar(-1e4);
  }
  EXPECT_LE(distance_of(old), kTolerance);
  EXPECT_EQ(load(huggingface_model(kind_, path_.string())).imported,
            str("weights: 28 tensors from ", path_.string(), ", 4 buffers and other heads ignored"));
}

TEST_F(HuggingFaceGpt2, TakesAHeadThatRepeatsTheTableAndNoOther) {
  SafetensorsFile file = fixture();
  file.tensors["lm_head.weight"] = file.tensors.at("transformer.wte.weight").clone();
  EXPECT_LE(distance_of(file), kTolerance);
  file.tensors["lm_head.weight"].data<float>()[7] += 1;
  EXPECT_EQ(error_of(huggingface_model(kind_, saved(file))),
            str(path_.string(), " does not fit the network gpt (Hugging Face's names of gpt2):",
                "\n  mismatched: lm_head.weight differs from transformer.wte.weight, which the network has for both"));
}

TEST_F(HuggingFaceGpt2, FillsAHeadOfItsOwnFromTheTable) {
  ModelConfig config = huggingface_model(kind_);
  std::get<models::Gpt>(config.form).tied = false;
  const InitialModel initial = load(config);
  EXPECT_LE(distance_of(*initial.model), kTolerance);
  const Value written = huggingface_config("gpt2", *initial.model, input());
  EXPECT_FALSE(written.at("tie_word_embeddings").as_bool());
}

TEST_F(HuggingFaceGpt2, FindsOtherHeadsByTheConfigBesideTheWeights) {
  ModelConfig config = huggingface_model(kind_);
  std::get<models::Gpt>(config.form).heads = 8;
  std::get<models::Gpt>(config.form).activation = std::string("gelu");
  EXPECT_EQ(error_of(config), str(config.weights, " does not fit the network gpt (Hugging Face's names of gpt2):",
                                  "\n  config.json: n_head is 4, the network's is 8",
                                  "\n  config.json: activation_function is \"gelu_new\", the network's is \"gelu\""));
  std::filesystem::copy(config.weights, path_);
  write_config(R"({"n_head": 8, "activation_function": "gelu"})");
  config.weights = path_.string();
  EXPECT_GT(distance_of(*load(config).model), kVisible) << "it is taken as it says, and computes something else";
  std::filesystem::remove(folder_.path() / kHuggingFaceConfig);
  write_config("[]");
  EXPECT_EQ(message_of<IoError>([&] { load(config); }),
            str((folder_.path() / kHuggingFaceConfig).string(), ": is a list; must be a block of settings"));
}

TEST_F(HuggingFaceGpt2, RefusesAttentionThatIsScaledOtherwise) {
  const ModelConfig config = huggingface_model(kind_, saved(fixture()));
  for (const auto& [key, ours] : {std::pair("scale_attn_weights", true), std::pair("scale_attn_by_inverse_layer_idx", false)}) {
    write_config(str("{\"", key, "\": ", to_json(Value(ours)), '}'));
    EXPECT_EQ(error_of(config), "") << key;
    write_config(str("{\"", key, "\": ", to_json(Value(!ours)), '}'));
    const std::string message = error_of(config);
    EXPECT_TRUE(message.ends_with(
        str("\n  config.json: ", key, " is ", to_json(Value(!ours)), ", the network's is ", to_json(Value(ours)))))
        << message;
  }
}

TEST_F(HuggingFaceGpt2, IsNoBert) {
  ModelConfig config = huggingface_model("bert", huggingface_folder("gpt2") + "/model.safetensors");
  const std::string message = error_of(config);
  EXPECT_TRUE(message.starts_with(config.weights + " does not fit the network: no names among those of Hugging Face's gpt2 for "
                                                   "head.norm.bias [32], "))
      << message;
}

std::string refusal(Module& model, const Shape& input) {
  const TemporaryFolder folder;
  const std::string message =
      message_of<ConfigError>([&] { export_huggingface(real_vfs(), model, input, folder.path() / "out"); });
  EXPECT_FALSE(real_vfs().exists(folder.path() / "out"));
  return message;
}

TEST_F(HuggingFaceGpt2, IsNotWrittenWithFactoredLayers) {
  std::unique_ptr<Module> model = load(huggingface_model(kind_)).model;
  replace_module(model, "blocks.1.mlp.fc1", std::make_unique<SvdLinear>(SvdLinearConfig{.in = 32, .out = 128, .rank = 3}));
  const std::string message = refusal(*model, input());
  EXPECT_TRUE(message.starts_with("no names among those of Hugging Face's gpt2 for blocks.1.mlp.fc1.in_factor [")) << message;
}

TEST_F(HuggingFaceGpt2, IsWrittenDenseWhereItIsSparse) {
  std::unique_ptr<Module> model = load(huggingface_model(kind_)).model;
  auto sparse = std::make_unique<SparseLinear>(SparseLinearConfig{.in = 32, .out = 128, .kept = 500});
  sparse->reset_parameters(4);
  const std::vector<float> dense = sparse->dense_weight().permute({1, 0}).contiguous().to_vector<float>();
  replace_module(model, "blocks.1.mlp.fc1", std::move(sparse));
  export_huggingface(real_vfs(), *model, input(), folder_.path());
  const auto tensors = read_safetensors((folder_.path() / kExportWeights).string()).tensors;
  EXPECT_EQ(tensors.at("transformer.h.1.mlp.c_fc.weight").to_vector<float>(), dense);
  EXPECT_EQ(std::ranges::count(dense, 0.0f), 32 * 128 - 500);
}

TEST_F(HuggingFaceGpt2, IsNotWrittenWhereTransformersComputesSomethingElse) {
  models::Gpt form = std::get<models::Gpt>(huggingface_model(kind_).form);
  form.dropout = 0.1;  // only affects training
  EXPECT_EQ(huggingface_config("gpt2", *form.build(input()), input()).at("n_layer").as_int(), 2);
  form.window = 5;
  const std::string message = refusal(*form.build(input()), input());
  EXPECT_TRUE(message.starts_with("layer 'blocks.0.attn.heads' is self_attention {")) << message;
  EXPECT_NE(message.find("; that of transformers' gpt2 is self_attention {"), std::string::npos) << message;
  form.window = 0;
  form.sparse = SparseAttentionKeys{};
  EXPECT_NE(refusal(*form.build(input()), input()).find("\"sparse\":"), std::string::npos) << "and a pattern";
  const Shape image{1, 28, 28, 1};
  EXPECT_TRUE(refusal(*build_model(named_model("lenet5"), image), image)
                  .starts_with("Hugging Face's layout has names for gpt, bert and vit; the network consists of conv1, "));
}

class HuggingFaceBert : public ::testing::Test, protected testing::HuggingFaceCase {
 protected:
  HuggingFaceBert() : HuggingFaceCase("bert") {}
};

TEST_F(HuggingFaceBert, TakesTheNamesAndHeadsOfTheFirstOnes) {
  SafetensorsFile old;
  for (const auto& [name, tensor] : fixture().tensors) {
    const bool norm = name.find(".LayerNorm.") != std::string::npos;
    const std::string stem = name.substr(0, name.rfind('.') + 1);
    old.tensors[!norm ? name : name.ends_with("weight") ? stem + "gamma" : stem + "beta"] = tensor;
  }
  old.tensors["bert.embeddings.position_ids"] = Tensor::zeros({1, 24}, DType::i64);
  old.tensors["bert.pooler.dense.weight"] = Tensor::zeros({32, 32});
  old.tensors["bert.pooler.dense.bias"] = Tensor::zeros({32});
  old.tensors["cls.seq_relationship.weight"] = Tensor::zeros({2, 32});
  old.tensors["cls.seq_relationship.bias"] = Tensor::zeros({2});
  old.tensors["cls.predictions.decoder.weight"] = old.tensors.at("bert.embeddings.word_embeddings.weight").clone();
  old.tensors["cls.predictions.decoder.bias"] = old.tensors.at("cls.predictions.bias").clone();
  EXPECT_LE(distance_of(old), kTolerance);
}

TEST_F(HuggingFaceBert, RefusesADecoder) {
  const ModelConfig config = huggingface_model(kind_, saved(fixture()));
  write_config(R"({"is_decoder": false})");
  EXPECT_EQ(error_of(config), "");
  write_config(R"({"is_decoder": true})");
  const std::string message = error_of(config);
  EXPECT_TRUE(message.ends_with("\n  config.json: is_decoder is true, the network's is false")) << message;
}

TEST_F(HuggingFaceBert, DoesNotSeePadding) {
  const InitialModel initial = load(huggingface_model(kind_));
  HuggingFaceSamples seen = samples_;
  std::erase_if(seen.inputs, [](const NamedTensor& part) { return part.name == "key_mask"; });
  EXPECT_GT(distance(*initial.model, seen, samples_.logits), kVisible) << "the mask is one that counts";
}

class HuggingFaceVit : public ::testing::Test, protected testing::HuggingFaceCase {
 protected:
  HuggingFaceVit() : HuggingFaceCase("vit") {}
};

TEST_F(HuggingFaceVit, IsGivenANewHead) {
  ModelConfig config = huggingface_model(kind_);
  config.classes = 3;
  EXPECT_NE(error_of(config).find("\n  mismatched: classifier.weight is f32 [7, 32], the network needs f32 [3, 32]"),
            std::string::npos);
  config.head = std::string("reset");
  const InitialModel initial = load(config);
  EXPECT_TRUE(initial.imported.ends_with(", head drawn anew")) << initial.imported;
  EXPECT_EQ(huggingface_config("vit", *initial.model, input()).at("id2label").as_map().size(), 3u);
}

}  // namespace
}  // namespace tessera
