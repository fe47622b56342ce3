// The files of tests/oracle/transformers/, and our networks of the same settings.
#pragma once

#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "core/autograd/var.h"
#include "core/io/safetensors.h"
#include "core/io/vfs.h"
#include "core/support/error.h"
#include "layers/models/model.h"
#include "layers/scores.h"
#include "tests/core/io/temporary_folder.h"
#include "tests/support/message_of.h"
#include "tests/train/run/weights_files.h"
#include "train/run/import_weights.h"
#include "train/torch/huggingface_config.h"

namespace tessera::testing {

// Both sides compute in single precision, and lie within 1e-5 of the same in double precision.
inline constexpr double kTolerance = 1e-4;
// By which another GELU or epsilon has to move a logit: ten times what passes as the same.
inline constexpr double kVisible = 1e-3;

inline const std::vector<std::string> kHuggingFaceKinds{"bert", "gpt2", "llama", "vit"};

inline std::string huggingface_folder(const std::string& kind) { return str(TESSERA_ORACLE_FOLDER, "/transformers/", kind); }

inline SafetensorsFile read_safetensors(const std::string& path) { return decode_safetensors(real_vfs().read_file(path), path); }

template <class Form>
Form small_form() {
  Form form;
  form.layers = 2;
  form.width = 32;
  form.heads = 4;
  return form;
}

inline ModelForm huggingface_form(const std::string& kind) {
  if (kind == "vit") {
    auto form = small_form<models::Vit>();
    form.hidden = 96;
    form.patch = 4;
    form.eps = 1e-12;
    return form;
  }
  if (kind == "bert") {
    auto form = small_form<models::Bert>();
    form.hidden = 96;
    form.vocabulary = 61;
    form.length = 24;
    return form;
  }
  auto form = small_form<models::Gpt>();
  form.vocabulary = 61;
  if (kind == "gpt2") {
    form.length = 24;
    return form;
  }
  form.kv_heads = 2;
  form.hidden = 56;
  form.positions = std::string("rotary");
  form.norm = std::string("rms_norm");
  form.eps = 1e-6;
  form.activation = std::string("swiglu");
  form.bias = false;
  form.tied = false;
  return form;
}

// Its network with the weights at `path`, or of the fixture itself.
inline ModelConfig huggingface_model(const std::string& kind, const std::string& path = {}) {
  ModelConfig config{.form = huggingface_form(kind)};
  if (kind == "vit") config.classes = 7;
  config.weights = path.empty() ? huggingface_folder(kind) + "/model.safetensors" : path;
  return config;
}

// Inputs and `logits`. The first input is what the network reads.
struct HuggingFaceSamples {
  std::vector<NamedTensor> inputs;
  Tensor logits;
};

inline HuggingFaceSamples huggingface_samples(const std::string& kind) {
  const auto tensors = read_safetensors(huggingface_folder(kind) + "/samples.safetensors").tensors;
  HuggingFaceSamples samples{{}, tensors.at("logits")};
  for (const char* name : {"image", "tokens", "segments", "key_mask"}) {
    if (const auto found = tensors.find(name); found != tensors.end()) samples.inputs.push_back({name, found->second});
  }
  return samples;
}

// The largest distance between the network's logits and these.
inline double distance(Module& network, const HuggingFaceSamples& samples, const Tensor& logits) {
  const NoGrad no_grad;
  const Tensor ours = scores(network, samples.inputs, {}, DType::f32).value();
  if (ours.shape() != logits.shape()) throw InternalError(str("logits are ", ours.shape(), ", needed are ", logits.shape()));
  const std::vector<float> a = ours.contiguous().to_vector<float>(), b = logits.contiguous().to_vector<float>();
  double largest = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const double difference = std::abs(static_cast<double>(a[i]) - b[i]);
    if (!(difference <= largest)) largest = difference;  // NaN too
  }
  return largest;
}

// A kind, its fixture, and files that a test makes of it.
class HuggingFaceCase {
 protected:
  explicit HuggingFaceCase(const std::string& kind) : kind_(kind), samples_(huggingface_samples(kind)) {}

  const Shape& input() const { return samples_.inputs.front().tensor.shape(); }
  InitialModel load(const ModelConfig& config) const { return initial_model(real_vfs(), config, input(), 1); }
  SafetensorsFile fixture() const { return read_safetensors(huggingface_folder(kind_) + "/model.safetensors"); }
  // In a folder without a config.json.
  std::string saved(const SafetensorsFile& file) const {
    save(path_, file);
    return path_.string();
  }
  // Beside what saved() writes.
  void write_config(const std::string& json) const {
    write_file_atomically(real_vfs(), folder_.path() / kHuggingFaceConfig, json);
  }
  double distance_of(Module& network) const { return distance(network, samples_, samples_.logits); }
  double distance_of(const SafetensorsFile& file) const {
    return distance_of(*load(huggingface_model(kind_, saved(file))).model);
  }
  std::string error_of(const ModelConfig& config) const {
    return message_of<ConfigError>([&] { load(config); });
  }

  std::string kind_;
  HuggingFaceSamples samples_;
  TemporaryFolder folder_;
  std::filesystem::path path_ = folder_.path() / "w.safetensors";
};

}  // namespace tessera::testing
