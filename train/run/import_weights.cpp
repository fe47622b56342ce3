#include "train/run/import_weights.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include "core/config/suggest.h"
#include "core/mask_bits.h"
#include "core/support/error.h"
#include "layers/builtin.h"
#include "layers/model_tree.h"
#include "layers/self_attention.h"
#include "train/run/named_fault.h"
#include "train/run/saved_model.h"
#include "train/run/weights_source.h"
#include "train/torch/huggingface_config.h"
#include "train/torch/torch_layout.h"

namespace tessera {
namespace {

constexpr std::string_view kBatchesTracked = "num_batches_tracked";
constexpr std::string_view kMask = ".mask";
constexpr std::size_t kMostSuggested = 2000;  // with more unexpected names none is suggested; a forged file may hold a million

// The layout with tessera's own names. A file may also have a mask of each parameter, next to it.
FileLayout own_layout(const std::map<std::string, Shape>& shapes) {
  FileLayout layout{.title = "tessera's names, convolutions OHWI"};
  for (const auto& [path, shape] : shapes) layout.tensors.push_back({path, path});
  return layout;
}

FileLayout torch_layout(const Module& model, const Shape& input, const std::map<std::string, Shape>& shapes) {
  FileLayout layout{.title = "PyTorch's names, convolutions OIHW", .tensors = torch_tensors(model, input)};
  layout.ignored = kBatchesTracked;
  layout.ignores = [shapes](const std::string& name) {
    const std::string stem = name.substr(0, name.rfind('.') + 1);
    return name == stem + std::string(kBatchesTracked) && shapes.contains(stem + "running_mean");
  };
  return layout;
}

// The layout of the file. The tensor names of a PyTorch file tell which library wrote it.
FileLayout layout_of(const WeightsSource& source, const Module& model, const Shape& input,
                     const std::map<std::string, Shape>& shapes) {
  if (!source.torch) return own_layout(shapes);
  if (!source.huggingface) return torch_layout(model, input, shapes);
  try {
    return huggingface_layout(*source.huggingface, shapes);
  } catch (const ConfigError& error) {
    throw ConfigError(str(source.name, " does not fit the network: ", error.what()));
  }
}

// The path of the layer that makes the logits, which `head: reset` draws anew; "" if there is none.
std::string find_head(Module& root, bool reset) {
  std::string path;
  std::string kind = "absent";
  for_each_module(root, [&](Module& module) {
    if (module.parameters().empty()) return;
    path = module.path();
    kind = module.kind();
  });
  TESSERA_CHECK(!reset || kind == "linear" || kind == "conv2d", ConfigError,
                "head: reset: the network's last layer with parameters, '", path, "', is ", kind,
                "; it must be linear or conv2d");
  return kind == "linear" || kind == "conv2d" ? path : "";
}

bool same_bytes(const Tensor& a, const Tensor& b) {
  if (a.shape() != b.shape() || a.dtype() != b.dtype()) return false;
  return std::memcmp(a.contiguous().raw(), b.contiguous().raw(), a.bytes()) == 0;
}

std::int64_t count_non_finite(const Tensor& f32) {
  const Tensor values = f32.contiguous();
  const float* data = values.data<float>();
  return std::count_if(data, data + values.numel(), [](float value) { return !std::isfinite(value); });
}

// Judges all of the network's tensors in a first pass and writes them in a second one.
class Importer {
 public:
  Importer(Module& model, const ModelConfig& config, const Shape& input, WeightsSource source)
      : model_(model),
        config_(config),
        source_(std::move(source)),
        reset_(config.head == "reset"),
        head_(find_head(model, reset_)) {
    for (const NamedParameter& entry : named_parameters(model)) parameters_[entry.path] = entry.parameter;
    for (const NamedBuffer& entry : named_buffers(model)) buffers_[entry.path] = entry.buffer;
    std::map<std::string, Shape> shapes;
    for (const auto& [path, parameter] : parameters_) shapes[path] = parameter->value().shape();
    for (const auto& [path, buffer] : buffers_) shapes[path] = buffer->value.shape();
    layout_ = layout_of(source_, model, input, shapes);
  }

  std::string run() {
    for (const TorchTensor& entry : layout_.tensors) judge(entry);
    for (const auto& [name, tensor] : source_.tensors) judge_rest(name);
    if (source_.huggingface_config) judge_settings();
    check();
    for (const auto& [path, value] : values_) write(path, value);
    for (const auto& [path, mask] : masks_) parameters_.at(path)->set_mask(mask);
    tell_modules();
    return summary();
  }

 private:
  bool in_head(const std::string& path) const { return path.starts_with(head_ + '.'); }
  const Tensor& own(const std::string& path) const {
    const auto parameter = parameters_.find(path);
    return parameter != parameters_.end() ? parameter->second->value() : buffers_.at(path)->value;
  }

  // The file's tensor of this name, or else the tensor that it would repeat.
  const Tensor* find(const std::string& name) const {
    auto found = source_.tensors.find(name);
    const auto repeat = layout_.repeats.find(name);
    if (found == source_.tensors.end() && repeat != layout_.repeats.end()) found = source_.tensors.find(repeat->second);
    return found == source_.tensors.end() ? nullptr : &found->second;
  }

  void judge(const TorchTensor& entry) {
    known_.insert(entry.name);
    if (!source_.torch && parameters_.contains(entry.path)) known_.insert(entry.path + std::string(kMask));
    if (reset_ && in_head(entry.path)) return;
    const Tensor* const stored = find(entry.name);
    const Shape wanted = torch_shape(own(entry.path).shape(), entry);
    const DType dtype = own(entry.path).dtype();
    const bool floating = is_floating(dtype);
    if (stored == nullptr) {
      missing_.emplace_back(entry.name, wanted);
    } else if (stored->shape() != wanted || (floating ? !is_floating(stored->dtype()) : stored->dtype() != dtype)) {
      faults_ += str("\n  mismatched: ", entry.name, " is ", stored->dtype(), ' ', stored->shape(), ", the network needs ",
                     floating ? DType::f32 : dtype, ' ', wanted);
    } else {
      return take(entry, *stored, floating);
    }
    head_fault_ = head_fault_ || in_head(entry.path);
  }

  void take(const TorchTensor& entry, const Tensor& stored, bool floating) {
    ++taken_;
    if (!floating) {
      values_[entry.path] = stored.clone();
      return;
    }
    const Tensor f32 = stored.to(DType::f32);
    const std::int64_t bad = config_.allow_nonfinite ? 0 : count_non_finite(f32);
    if (bad > 0) {
      faults_ += str("\n  not finite: ", entry.name, ' ', f32.shape(), " has ", bad, " NaN or Inf of ", f32.numel());
    }
    non_finite_ = non_finite_ || bad > 0;
    Tensor& value = values_[entry.path];
    if (!value.defined()) value = Tensor::empty(own(entry.path).shape());
    const Tensor part = entry.rows == 0 ? value : value.slice(0, entry.first, entry.first + entry.rows);
    part.copy_from(from_torch(f32, entry).reshape(part.shape()));
    if (!source_.torch && parameters_.contains(entry.path)) judge_mask(entry.path);
  }

  void judge_mask(const std::string& path) {
    const auto found = source_.tensors.find(path + std::string(kMask));
    if (found == source_.tensors.end()) return;
    const Tensor& bits = found->second;
    const Shape& shape = own(path).shape();
    const std::string fault = bits_fault(bits, shape.numel(), bits.dtype() == DType::u8 ? kept_bits(bits) : 0);
    if (!fault.empty()) faults_ += str("\n  mismatched: ", found->first, ' ', fault);
    if (fault.empty()) masks_[path] = unpacked_bits(bits, shape);
  }

  // Sparse layers throw if a buffer is not a mask of their weight.
  void tell_modules() {
    try {
      for_each_module(model_, [](Module& module) { module.buffers_changed(); });
    } catch (const IoError& error) {
      throw ConfigError(str(source_.name, " does not fit the network ", config_.name(), ": ", error.what()));
    }
  }

  // Judges a tensor of the file that no tensor of the network asked for.
  void judge_rest(const std::string& name) {
    if (known_.contains(name)) return;
    const auto repeat = layout_.repeats.find(name);
    if (layout_.ignores && layout_.ignores(name)) {
      ++ignored_;
    } else if (repeat == layout_.repeats.end() || !source_.tensors.contains(repeat->second)) {
      unexpected_.push_back(name);
    } else if (!same_bytes(source_.tensors.at(name), source_.tensors.at(repeat->second))) {
      faults_ += str("\n  mismatched: ", name, " differs from ", repeat->second, ", which the network has for both");
    }
  }

  // Judges the settings, which no shape shows. With other settings the same tensors would compute something else.
  void judge_settings() {
    const Value settings = huggingface_settings(source_.huggingface->type, model_);
    for (const std::string& line : differing_settings(*source_.huggingface_config, settings)) {
      faults_ += str("\n  ", kHuggingFaceConfig, ": ", line);
    }
  }

  void check() const {
    std::vector<std::string_view> candidates(unexpected_.begin(), unexpected_.end());
    if (candidates.size() > kMostSuggested) candidates.clear();
    std::string text;
    for (const auto& [name, shape] : missing_) {
      text += str("\n  missing: ", name, ' ', shape);
      const std::vector<std::string> nearest = nearest_names(name, candidates, 1);
      if (!nearest.empty()) text += str("; the file has '", nearest.front(), "'");
    }
    for (const std::string& name : unexpected_) text += str("\n  unexpected: ", name, ' ', source_.tensors.at(name).shape());
    text += faults_;
    if (text.empty()) return;
    if (non_finite_) text += "\nallow_nonfinite: true takes NaN and Inf as they are";
    if (head_fault_) text += "\nhead: reset draws the last layer anew and asks the file nothing of it";
    throw ConfigError(str(source_.name, " does not fit the network ", config_.name(), " (", layout_.title, "):", text));
  }

  void write(const std::string& path, const Tensor& value) {
    const auto parameter = parameters_.find(path);
    if (parameter == parameters_.end()) {
      Tensor& buffer = buffers_.at(path)->value;
      return buffer.copy_from(value.to(buffer.device()));
    }
    parameter->second->set_value(value.to(parameter->second->value().device()));
  }

  std::string summary() const {
    std::string text = str("weights: ", taken_, " tensors from ", source_.name);
    if (ignored_ > 0) text += str(", ", ignored_, ' ', layout_.ignored, " ignored");
    if (reset_) text += str(", ", head_, " drawn anew");
    return text;
  }

  Module& model_;
  const ModelConfig& config_;
  WeightsSource source_;
  bool reset_;
  std::string head_;
  std::map<std::string, Parameter*> parameters_;
  std::map<std::string, Buffer*> buffers_;
  FileLayout layout_;
  std::set<std::string> known_;
  std::vector<std::pair<std::string, Shape>> missing_;
  std::vector<std::string> unexpected_;
  std::string faults_;
  bool non_finite_ = false;
  bool head_fault_ = false;
  std::map<std::string, Tensor> values_;
  std::map<std::string, Tensor> masks_;
  std::int64_t taken_ = 0;
  std::int64_t ignored_ = 0;
};

std::unique_ptr<Module> rebuilt(const WeightsSource& source) {
  try {
    return rebuild(*source.tree, builtin_layers());
  } catch (const Error& error) {
    throw ConfigError(str(source.name, ": its network cannot be built: ", error.what()));
  }
}

std::unique_ptr<Module> rebuilt(const WeightsSource& source, const Shape& input) {
  TESSERA_CHECK(
      source.tree, ConfigError, source.name, ": holds tensors and no network, which name: ", kSavedModel,
      " needs; give a run folder or a file of tessera compress or tessera export --layout tessera, or name the network");
  std::unique_ptr<Module> model = rebuilt(source);
  model->output_shape(input);  // throws if the network does not take this input
  return model;
}

std::vector<SelfAttention*> sparse_attention_in(Module& model) {
  std::vector<SelfAttention*> layers;
  for_each_module(model, [&](Module& module) {
    auto* const attention = dynamic_cast<SelfAttention*>(&module);
    if (attention != nullptr && attention->options().sparse) layers.push_back(attention);
  });
  return layers;
}

// Gives sparse attention the pairs of the layer at its path in the source, unless it has its own seed. Returns the paths of the
// layers whose pairs differ from the source's or are not known yet.
std::vector<std::string> take_pairs(Module& model, const WeightsSource& source) {
  const std::vector<SelfAttention*> layers = sparse_attention_in(model);
  if (layers.empty()) return {};
  const std::unique_ptr<Module> structure = source.tree ? rebuilt(source) : nullptr;
  std::map<std::string, const SelfAttention*> theirs;
  if (structure) {
    for (const SelfAttention* const layer : sparse_attention_in(*structure)) theirs[layer->path()] = layer;
  }
  std::vector<std::string> without;
  for (SelfAttention* const layer : layers) {
    const auto found = theirs.find(layer->path());
    const bool known = found != theirs.end() ? layer->take_pairs_of(*found->second) : layer->options().sparse->seed.has_value();
    if (!known) without.push_back(layer->path());
  }
  return without;
}

InitialModel imported_model(Vfs& vfs, const ModelConfig& config, const Shape& input, std::uint64_t seed,
                            bool pairs_must_be_known) {
  std::optional<WeightsSource> source;
  InitialModel result;
  std::vector<std::string> new_pairs;
  if (config.name() == kSavedModel) source = read_weights(vfs, config.weights);
  result.model = source ? rebuilt(*source, input) : build_model(config, input);
  if (!source && !config.weights.empty()) {
    source = read_weights(vfs, config.weights);
    new_pairs = take_pairs(*result.model, *source);
  }
  TESSERA_CHECK(new_pairs.empty() || !pairs_must_be_known, ConfigError, "'", new_pairs.front(), "' of model ", config.name(),
                " is sparse attention, and ", source->name,
                " does not tell which pairs it sees by these keys, heads and positions; needs those of the trained network, or "
                "model: {name: ",
                kSavedModel, "}");
  initialize(*result.model, seed);
  if (!source) return result;
  result.use = source->use;
  result.imported = Importer(*result.model, config, input, std::move(*source)).run();
  if (!new_pairs.empty()) {
    result.imported +=
        str("; what '", new_pairs.front(), "'", new_pairs.size() > 1 ? " and others see" : " sees", " is drawn anew");
  }
  return result;
}

}  // namespace

InitialModel initial_model(Vfs& vfs, const ModelConfig& config, const Shape& input, std::uint64_t seed) {
  return imported_model(vfs, config, input, seed, false);
}

InitialModel trained_model(Vfs& vfs, const ModelConfig& config, const Shape& input) {
  return imported_model(vfs, config, input, 0, true);
}

FileNetwork file_network(Vfs& vfs, const std::string& path) {
  WeightsSource source = read_weights_file(vfs, path);
  TESSERA_CHECK(
      source.input, ConfigError, path,
      ": holds no network and its input; give a run folder or a file of tessera compress or tessera export --layout tessera");
  const ModelConfig config{.form = models::Saved(), .weights = path};
  FileNetwork network{naming_the_place(path, [&] { return rebuilt(source, *source.input); }), *source.input, source.use};
  Importer(*network.model, config, network.input, std::move(source)).run();
  return network;
}

std::unique_ptr<Module> empty_model(Vfs& vfs, const ModelConfig& config, const Shape& input) {
  return config.name() == kSavedModel ? rebuilt(read_weights(vfs, config.weights), input) : build_model(config, input);
}

}  // namespace tessera
