// Checks names and axes against files written by transformers (tests/oracle/transformers_fixtures.py), without a network.
#include "train/torch/huggingface.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "core/io/safetensors.h"
#include "core/io/vfs.h"
#include "core/support/error.h"
#include "tests/support/message_of.h"

namespace tessera {
namespace {

using Shapes = std::map<std::string, Shape>;

std::map<std::string, Tensor> fixture(const std::string& kind) {
  const std::string path = str(TESSERA_ORACLE_FOLDER, "/transformers/", kind, "/model.safetensors");
  return decode_safetensors(real_vfs().read_file(path), path).tensors;
}

void add_linear(Shapes& shapes, const std::string& path, std::int64_t in, std::int64_t out) {
  shapes[path + ".weight"] = {out, in};
  shapes[path + ".bias"] = {out};
}

void add_blocks(Shapes& shapes, std::int64_t hidden) {
  for (const std::string block : {"blocks.0.", "blocks.1."}) {
    add_linear(shapes, block + "attn.qkv", 32, 96);
    add_linear(shapes, block + "attn.out", 32, 32);
    add_linear(shapes, block + "mlp.fc1", 32, hidden);
    add_linear(shapes, block + "mlp.fc2", hidden, 32);
    for (const char* norm : {"norm1.weight", "norm1.bias", "norm2.weight", "norm2.bias"}) shapes[block + norm] = {32};
  }
  shapes["norm.weight"] = shapes["norm.bias"] = {32};
}

Shapes gpt2() {
  Shapes shapes{{"tokens.weight", {61, 32}}, {"positions.weight", {24, 32}}};
  add_blocks(shapes, 128);
  return shapes;
}

Shapes bert() {
  Shapes shapes{{"tokens.weight", {61, 32}}, {"positions.weight", {24, 32}}, {"segments.weight", {2, 32}}};
  add_blocks(shapes, 96);
  add_linear(shapes, "head.transform", 32, 32);
  shapes["head.norm.weight"] = shapes["head.norm.bias"] = {32};
  shapes["head.output.bias"] = {61};
  return shapes;
}

Shapes vit() {
  Shapes shapes{{"patches.conv.weight", {32, 4, 4, 3}},
                {"patches.conv.bias", {32}},
                {"class_token.weight", {1, 32}},
                {"positions.weight", {17, 32}}};
  add_blocks(shapes, 96);
  add_linear(shapes, "head", 32, 7);
  return shapes;
}

Shapes llama() {
  Shapes shapes{{"tokens.weight", {61, 32}}, {"norm.weight", {32}}, {"head.weight", {61, 32}}};
  for (const std::string block : {"blocks.0.", "blocks.1."}) {
    shapes[block + "norm1.weight"] = shapes[block + "norm2.weight"] = {32};
    shapes[block + "attn.qkv.weight"] = {32 + 2 * 16, 32};
    shapes[block + "attn.out.weight"] = {32, 32};
    shapes[block + "mlp.fc1.weight"] = {2 * 56, 32};
    shapes[block + "mlp.fc2.weight"] = {32, 56};
  }
  return shapes;
}

const TorchTensor& entry(const FileLayout& layout, const std::string& name) {
  const auto found = std::ranges::find(layout.tensors, name, &TorchTensor::name);
  if (found == layout.tensors.end()) throw InternalError(name + " is not in the layout");
  return *found;
}

void expect_all_of(const std::string& kind, const Shapes& shapes) {
  SCOPED_TRACE(kind);
  const auto file = fixture(kind);
  const std::optional<HuggingFaceNames> names = huggingface_names(file);
  ASSERT_TRUE(names);
  EXPECT_EQ(names->type, kind);
  EXPECT_TRUE(names->prefix);
  const FileLayout layout = huggingface_layout(*names, shapes);
  EXPECT_EQ(layout.title, "Hugging Face's names of " + kind);
  std::set<std::string> asked;
  for (const TorchTensor& tensor : layout.tensors) {
    ASSERT_TRUE(file.contains(tensor.name)) << tensor.name;
    EXPECT_EQ(torch_shape(shapes.at(tensor.path), tensor), file.at(tensor.name).shape()) << tensor.name;
    asked.insert(tensor.name);
  }
  EXPECT_EQ(asked.size(), layout.tensors.size()) << "a name is given twice";
  EXPECT_EQ(asked.size(), file.size());
}

TEST(HuggingFace, NamesEveryTensorOfItsFiles) {
  expect_all_of("gpt2", gpt2());
  expect_all_of("bert", bert());
  expect_all_of("vit", vit());
  expect_all_of("llama", llama());
}

// Converts theirs to ours and back: the bytes are the same, and every element of ours is written.
TEST(HuggingFace, TensorsComeBackAsTheyWere) {
  const std::map<std::string, Shapes> kinds{{"gpt2", gpt2()}, {"bert", bert()}, {"vit", vit()}, {"llama", llama()}};
  for (const auto& [kind, shapes] : kinds) {
    const auto file = fixture(kind);
    const FileLayout layout = huggingface_layout(*huggingface_names(file), shapes);
    std::map<std::string, Tensor> ours;
    for (const auto& [path, shape] : shapes) ours[path] = Tensor::full(shape, 1e30);
    for (const TorchTensor& tensor : layout.tensors) {
      const Tensor whole = ours.at(tensor.path);
      const Tensor part = tensor.rows == 0 ? whole : whole.slice(0, tensor.first, tensor.first + tensor.rows);
      part.copy_from(from_torch(file.at(tensor.name), tensor).reshape(part.shape()));
    }
    for (const auto& [path, tensor] : ours) {
      for (const float value : tensor.to_vector<float>()) ASSERT_NE(value, 1e30f) << kind << ' ' << path;
    }
    for (const TorchTensor& tensor : layout.tensors) {
      EXPECT_EQ(to_torch(ours.at(tensor.path), tensor).contiguous().to_vector<float>(), file.at(tensor.name).to_vector<float>())
          << tensor.name;
    }
  }
}

TEST(HuggingFace, PutsQueriesKeysAndValuesIntoOneMatrix) {
  const FileLayout layout = huggingface_layout({.type = "bert"}, bert());
  const TorchTensor& key = entry(layout, "bert.encoder.layer.1.attention.self.key.bias");
  EXPECT_EQ(key.path, "blocks.1.attn.qkv.bias");
  EXPECT_EQ(std::pair(key.first, key.rows), std::pair(std::int64_t{32}, std::int64_t{32}));
  const FileLayout grouped = huggingface_layout({.type = "llama"}, llama());
  const TorchTensor& value = entry(grouped, "model.layers.0.self_attn.v_proj.weight");
  EXPECT_EQ(std::pair(value.first, value.rows), std::pair(std::int64_t{48}, std::int64_t{16}));
  const TorchTensor& up = entry(grouped, "model.layers.0.mlp.up_proj.weight");
  EXPECT_EQ(std::pair(up.first, up.rows), std::pair(std::int64_t{56}, std::int64_t{56}));
}

TEST(HuggingFace, TransposesTheMatricesOfGpt2AndNoOthers) {
  for (const TorchTensor& tensor : huggingface_layout({.type = "gpt2"}, gpt2()).tensors) {
    const bool matrix =
        tensor.path.starts_with("blocks.") && tensor.path.ends_with(".weight") && tensor.path.find("norm") == std::string::npos;
    EXPECT_EQ(tensor.axes == TorchAxes::transposed, matrix) << tensor.path;
  }
}

TEST(HuggingFace, KnowsFilesByTheirNames) {
  const auto names_of = [](const std::vector<std::string>& names) {
    std::map<std::string, Tensor> file;
    for (const std::string& name : names) file[name] = Tensor::zeros({1});
    return huggingface_names(file);
  };
  EXPECT_FALSE(names_of({}));
  EXPECT_FALSE(names_of({"conv1.weight", "fc.weight", "encoder.layers.encoder_layer_0.ln_1.weight", "tokens.weight"}));
  const auto bare = names_of({"wte.weight", "h.0.attn.bias"});
  ASSERT_TRUE(bare);
  EXPECT_EQ(bare->type, "gpt2");
  EXPECT_FALSE(bare->prefix);
  const auto old = names_of({"bert.embeddings.word_embeddings.weight", "bert.embeddings.LayerNorm.gamma"});
  ASSERT_TRUE(old);
  EXPECT_EQ(old->type, "bert");
  EXPECT_TRUE(old->prefix);
  EXPECT_TRUE(old->gamma);
}

TEST(HuggingFace, SpellsNamesAsTheFileDoes) {
  const FileLayout bare = huggingface_layout({.type = "bert", .prefix = false, .gamma = true}, bert());
  EXPECT_EQ(entry(bare, "embeddings.LayerNorm.gamma").path, "norm.weight");
  EXPECT_EQ(entry(bare, "encoder.layer.0.output.LayerNorm.beta").path, "blocks.0.norm2.bias");
  EXPECT_EQ(entry(bare, "cls.predictions.transform.LayerNorm.gamma").path, "head.norm.weight");
  EXPECT_EQ(entry(bare, "encoder.layer.0.output.dense.bias").path, "blocks.0.mlp.fc2.bias");
  EXPECT_TRUE(bare.ignores("embeddings.position_ids"));
  EXPECT_FALSE(bare.ignores("bert.embeddings.position_ids"));
}

TEST(HuggingFace, IgnoresBuffersAndOtherHeads) {
  const FileLayout gpt = huggingface_layout({.type = "gpt2"}, gpt2());
  EXPECT_TRUE(gpt.ignores("transformer.h.11.attn.bias"));
  EXPECT_TRUE(gpt.ignores("transformer.h.0.attn.masked_bias"));
  EXPECT_FALSE(gpt.ignores("transformer.h.x.attn.bias"));
  EXPECT_FALSE(gpt.ignores("transformer.h.0.attn.c_attn.bias"));
  EXPECT_EQ(gpt.repeats, (std::map<std::string, std::string>{{"lm_head.weight", "transformer.wte.weight"}}));
  const FileLayout masked = huggingface_layout({.type = "bert"}, bert());
  EXPECT_TRUE(masked.ignores("bert.pooler.dense.weight"));
  EXPECT_TRUE(masked.ignores("cls.seq_relationship.bias"));
  EXPECT_EQ(masked.repeats.at("cls.predictions.decoder.bias"), "cls.predictions.bias");
}

TEST(HuggingFace, ListsTensorsThatHaveNoNameThere) {
  Shapes factored = gpt2();
  factored.erase("blocks.0.mlp.fc1.weight");
  factored["blocks.0.mlp.fc1.in_factor"] = {4, 32};
  factored["blocks.0.mlp.fc1.out_factor"] = {128, 4};
  EXPECT_EQ(message_of<ConfigError>([&] { huggingface_layout({.type = "gpt2"}, factored); }),
            "no names among those of Hugging Face's gpt2 for blocks.0.mlp.fc1.in_factor [4, 32], blocks.0.mlp.fc1.out_factor "
            "[128, 4]");
  Shapes uneven = llama();
  uneven["blocks.0.attn.qkv.weight"] = {65, 32};
  uneven["blocks.1.mlp.fc1.weight"] = {111, 32};
  EXPECT_EQ(
      message_of<ConfigError>([&] { huggingface_layout({.type = "llama"}, uneven); }),
      "no names among those of Hugging Face's llama for blocks.0.attn.qkv.weight [65, 32], blocks.1.mlp.fc1.weight [111, 32]");
}

TEST(TorchAxes, RefuseShapesThatTheyDoNotFit) {
  const TorchTensor transposed{.path = "a", .name = "a", .axes = TorchAxes::transposed};
  EXPECT_EQ(message_of<ShapeError>([&] { torch_shape({3}, transposed); }), "a is [3]; a matrix that is transposed has 2 axes");
  const TorchTensor part{.path = "a", .name = "a", .first = 2, .rows = 2};
  EXPECT_EQ(message_of<ShapeError>([&] {
              to_torch(Tensor::zeros({3, 2}), part);
            }),
            "a is rows 2 to 4 of [3, 2]; the first axis must have them");
  const TorchTensor three{.path = "a", .name = "a", .axes = TorchAxes::three};
  EXPECT_EQ(torch_shape({5}, three), (Shape{1, 1, 5}));
  EXPECT_EQ(torch_shape({2, 5}, three), (Shape{1, 2, 5}));
  EXPECT_EQ(message_of<ShapeError>([&] { torch_shape({1, 2, 3, 4}, three); }), "a is [1, 2, 3, 4]; it must have 3 axes at most");
}

}  // namespace
}  // namespace tessera
