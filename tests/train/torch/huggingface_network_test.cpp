// Networks with weights under Hugging Face's names give the logits of transformers, and are written so that transformers reads
// them. The Python side is tests/oracle/transformers_fixtures.py.
#include <gtest/gtest.h>

#include <cstdlib>
#include <functional>
#include <variant>

#include "core/ops/arithmetic.h"
#include "core/ops/gelu.h"
#include "core/ops/view.h"
#include "layers/activation.h"
#include "tests/support/python.h"
#include "tests/train/torch/huggingface_fixtures.h"
#include "train/report/export.h"
#include "train/torch/huggingface_config.h"

namespace tessera {
namespace {

using testing::distance;
using testing::huggingface_folder;
using testing::huggingface_model;
using testing::kTolerance;
using testing::kVisible;
using testing::read_safetensors;

class HuggingFaceNetwork : public ::testing::TestWithParam<std::string>, protected testing::HuggingFaceCase {
 protected:
  HuggingFaceNetwork() : HuggingFaceCase(GetParam()) {}
};

TEST_P(HuggingFaceNetwork, GivesTheLogitsOfTransformers) {
  const InitialModel initial = load(huggingface_model(kind_));
  EXPECT_LE(distance_of(*initial.model), kTolerance);
  EXPECT_EQ(initial.imported,
            str("weights: ", fixture().tensors.size(), " tensors from ", huggingface_folder(kind_), "/model.safetensors"));
  double largest = 0;
  for (const float logit : samples_.logits.to_vector<float>()) largest = std::max(largest, std::abs(double{logit}));
  EXPECT_GT(largest, 1) << "logits near zero prove nothing";
}

void replace_activations(std::unique_ptr<Module>& network, const std::function<std::unique_ptr<Module>()>& make) {
  std::vector<std::string> paths;
  for_each_module(*network, [&](const Module& module) {
    if (module.path().ends_with(".act")) paths.push_back(module.path());
  });
  for (const std::string& path : paths) replace_module(network, path, make());
}

// Takes the place of SwiGLU, but with GELU in the gate.
class GatedGelu final : public Activation {
 public:
  std::string_view kind() const override { return "gated_gelu"; }
  Var forward(const Var& x, const Context&) override {
    const std::int64_t last = x.shape()[x.shape().rank() - 1];
    const int axis = x.shape().rank() - 1;
    return mul(gelu(slice(x, axis, 0, last / 2)), slice(x, axis, last / 2, last));
  }
  Shape output_shape(const Shape& input, Trace* trace) const override { return Swiglu().output_shape(input, trace); }
};

TEST_P(HuggingFaceNetwork, WithAnotherActivationWouldNot) {
  InitialModel initial = load(huggingface_model(kind_));
  replace_activations(initial.model, [&]() -> std::unique_ptr<Module> {
    if (kind_ == "llama") return std::make_unique<GatedGelu>();
    return std::make_unique<Gelu>(GeluConfig{.form = kind_ == "gpt2" ? "erf" : "tanh"});
  });
  EXPECT_GT(distance_of(*initial.model), kVisible);
}

ModelConfig with_eps(ModelConfig config, double eps) {
  if (auto* const gpt = std::get_if<models::Gpt>(&config.form)) gpt->eps = eps;
  if (auto* const bert = std::get_if<models::Bert>(&config.form)) bert->eps = eps;
  if (auto* const vit = std::get_if<models::Vit>(&config.form)) vit->eps = eps;
  return config;
}

TEST_P(HuggingFaceNetwork, WithAnotherEpsilonWouldNot) {
  const double other = kind_ == "llama" ? 1e-5 : 1e-6;
  EXPECT_GT(distance_of(*load(with_eps(huggingface_model(kind_, saved(fixture())), other)).model), kVisible);
  // If config.json is next to the weights, the mistake is found before anything is computed.
  const std::string message = error_of(with_eps(huggingface_model(kind_), other));
  EXPECT_NE(message.find(kind_ == "llama"  ? "\n  config.json: rms_norm_eps is 1e-06, the network's is 1e-05"
                         : kind_ == "gpt2" ? "\n  config.json: layer_norm_epsilon is 1e-05, the network's is 1e-06"
                                           : "\n  config.json: layer_norm_eps is 1e-12, the network's is 1e-06"),
            std::string::npos)
      << message;
}

TEST_P(HuggingFaceNetwork, IsWrittenAsTransformersWritesIt) {
  const InitialModel initial = load(huggingface_model(kind_));
  export_huggingface(real_vfs(), *initial.model, input(), folder_.path() / "out");
  const std::string path = (folder_.path() / "out" / kExportWeights).string();
  const SafetensorsFile written = read_safetensors(path), theirs = fixture();
  EXPECT_EQ(written.metadata.at("format"), "pt");
  ASSERT_EQ(written.tensors.size(), theirs.tensors.size());
  for (const auto& [name, tensor] : theirs.tensors) {
    ASSERT_TRUE(written.tensors.contains(name)) << name;
    EXPECT_EQ(written.tensors.at(name).shape(), tensor.shape()) << name;
    EXPECT_EQ(written.tensors.at(name).to_vector<float>(), tensor.to_vector<float>()) << name;
  }
  const State before = model_state(*initial.model), after = model_state(*load(huggingface_model(kind_, path)).model);
  ASSERT_EQ(before.tensors.size(), after.tensors.size());
  for (const auto& [name, tensor] : before.tensors) {
    EXPECT_EQ(tensor.to_vector<float>(), after.tensors.at(name).to_vector<float>()) << name;
  }
}

// Our config.json agrees with that of transformers in every key that both have.
TEST_P(HuggingFaceNetwork, IsDescribedAsTransformersDescribesIt) {
  const InitialModel initial = load(huggingface_model(kind_));
  const Value ours = huggingface_config(huggingface_type(*initial.model), *initial.model, input());
  const Value theirs = parse_json(real_vfs().read_file(huggingface_folder(kind_) + "/config.json"), "theirs");
  for (const Value::Entry& entry : ours.as_map()) {
    const Value* const found = theirs.find(entry.key);
    if (found == nullptr || (entry.key == "n_inner" && found->is_null())) continue;  // null means four times the width
    EXPECT_EQ(to_json(entry.value), to_json(*found)) << entry.key;
  }
  EXPECT_EQ(ours.at("model_type").as_string(), kind_);
}

TEST_P(HuggingFaceNetwork, ReadsItsTensorsInHalfPrecisionToo) {
  SafetensorsFile half = fixture();
  for (auto& [name, tensor] : half.tensors) tensor = tensor.to(DType::f16);
  EXPECT_LE(distance_of(half), kTolerance) << "the fixtures are numbers of f16";
}

TEST_P(HuggingFaceNetwork, ListsEveryTensorThatDoesNotFit) {
  SafetensorsFile file = fixture();
  const std::string norm = kind_ == "bert"    ? "bert.encoder.layer.1.output.LayerNorm.weight"
                           : kind_ == "gpt2"  ? "transformer.h.1.ln_2.weight"
                           : kind_ == "llama" ? "model.layers.1.input_layernorm.weight"
                                              : "vit.layernorm.weight";
  const std::string first = file.tensors.begin()->first;
  file.tensors.erase(norm);
  file.tensors["extra.weight"] = Tensor::zeros({2});
  file.tensors[first] = Tensor::zeros({5, 3});
  const std::string message = error_of(huggingface_model(kind_, saved(file)));
  EXPECT_NE(message.find(str("(Hugging Face's names of ", kind_, "):")), std::string::npos) << message;
  EXPECT_NE(message.find(str("\n  missing: ", norm, " [32]")), std::string::npos) << message;
  EXPECT_NE(message.find("\n  unexpected: extra.weight [2]"), std::string::npos) << message;
  EXPECT_NE(message.find(str("\n  mismatched: ", first, " is f32 [5, 3], the network needs f32 [")), std::string::npos)
      << message;
}

TEST_P(HuggingFaceNetwork, IsReadBackByTransformers) {
  const char* const named = std::getenv("TESSERA_TRANSFORMERS_PYTHON");
  const std::string python = testing::python_with("transformers, safetensors, torch", named == nullptr ? "" : named);
  if (python.empty()) GTEST_SKIP() << "no python3 with transformers";
  InitialModel initial = load(huggingface_model(kind_));
  initialize(*initial.model, 3);  // small weights, unlike those of the fixtures
  export_huggingface(real_vfs(), *initial.model, input(), folder_.path() / "out");
  std::filesystem::copy(huggingface_folder(kind_) + "/samples.safetensors", folder_.path() / "out");
  const std::string out = (folder_.path() / "out").string();
  ASSERT_EQ(testing::output_of(python + " " TESSERA_ORACLE_FOLDER "/transformers_fixtures.py check " + out + " 2>&1"), "");
  const Tensor theirs = read_safetensors(out + "/logits.safetensors").tensors.at("logits");
  EXPECT_LE(distance(*initial.model, samples_, theirs), kTolerance);
  EXPECT_GT(distance(*initial.model, samples_, samples_.logits), kVisible) << "the weights were drawn anew";
}

INSTANTIATE_TEST_SUITE_P(Kinds, HuggingFaceNetwork, ::testing::ValuesIn(testing::kHuggingFaceKinds),
                         [](const auto& kind) { return kind.param; });

}  // namespace
}  // namespace tessera
