#include <algorithm>

#include "core/support/error.h"
#include "layers/builtin.h"
#include "layers/conv2d.h"
#include "layers/flatten.h"
#include "layers/linear.h"
#include "layers/model_tree.h"
#include "layers/models/model.h"
#include "layers/residual.h"
#include "layers/residual_block.h"
#include "layers/sequential.h"
#include "layers/sparse_conv2d.h"
#include "layers/sparse_linear.h"
#include "tests/fuzz/memory_file.h"
#include "tests/fuzz/memory_limit.h"
#include "tests/fuzz/targets.h"
#include "train/run/import_weights.h"
#include "train/run/model_state.h"
#include "train/run/network_file.h"

namespace tessera::fuzz {
namespace {

// Returns false if `read` threw one of the errors that a reader of networks may throw.
template <class Read>
bool accepted(Read&& read) {
  try {
    read();
    return true;
  } catch (const IoError&) {
  } catch (const ConfigError&) {
  } catch (const ShapeError&) {  // the tree does not fit this input
  } catch (const OutOfMemoryError&) {
  }
  return false;
}

FileNetwork read_network(std::string_view bytes) {
  static MemoryFile file;
  file.write(bytes);
  return file_network(real_vfs(), file.path());
}

// Returns whether the bytes were accepted.
bool check(std::string_view bytes) {
  FileNetwork found;
  if (!accepted([&] { found = read_network(bytes); })) return false;
  const std::string written = encode_network(*found.model, found.input);
  const FileNetwork again = read_network(written);
  require(again.input == found.input, "the input changed");
  require(describe(*again.model) == describe(*found.model), "the tree changed");
  require(encode_network(*again.model, again.input) == written, "the same network gave other bytes");
  accepted([&] { total_cost(*found.model, found.input); });  // the cost may exceed what can be counted
  return true;
}

// A network file with the tensors that the tree needs.
std::string file_of(std::string_view tree, std::string_view input) {
  const std::unique_ptr<Module> model = rebuild(parse_json(tree, "tree"), builtin_layers());
  return encode_safetensors(
      {.tensors = model_state(*model).tensors,
       .metadata = {{kLayoutKey, "OHWI"}, {kNetworkKey, std::string(tree)}, {kInputKey, std::string(input)}}});
}

std::string without_checksum(SafetensorsFile file) {
  file.metadata.erase(std::string(kChecksumKey));
  return encode_safetensors(file);
}

struct Sample {
  Shape input;
  const char* layers;
};

const std::vector<Sample>& samples() {
  static const std::vector<Sample> all{
      {{1, 4}, R"([{"linear": {"out": 3}}])"},
      {{1, 6}, R"(["gelu", {"svd_linear": {"out": 4, "rank": 2}}, {"layer_norm": {}}, {"dropout": {"p": 0.5}},
                   {"tt_linear": {"out": 4, "out_modes": [2, 2], "in_modes": [2, 2], "ranks": [2]}}, "tanh"])"},
      {{1, 5, 5, 1}, R"([{"conv2d": {"out": 2, "kernel": 3, "padding": 1, "name": "c"}}, "batch_norm", "relu",
                         {"max_pool2d": {"kernel": 2}}, "flatten", {"linear": {"out": 2, "bias": false}}])"},
      {{1, 3, 4, 2}, R"([{"tucker2_conv2d": {"out": 3, "kernel": 3, "rank_in": 1, "rank_out": 2, "padding": 1}}, "silu",
                         {"svd_conv2d": {"out": 2, "kernel": 1, "rank": 1}}, {"avg_pool2d": {"kernel": 1}},
                         {"spatial_svd_conv2d": {"out": 2, "kernel": 3, "rank": 1, "padding": 1}}, "sigmoid",
                         {"cp_conv2d": {"out": 2, "kernel": 3, "rank": 2, "padding": 1}}, "identity", "global_avg_pool"])"},
      {{1, 3, 3, 4}, R"([{"tt_conv2d": {"out": 4, "kernel": 1, "out_modes": [2, 2], "in_modes": [2, 2], "ranks": [1, 2, 2, 1]}},
                         {"tt_garipov_conv2d": {"out": 4, "kernel": 3, "out_modes": [2, 2], "in_modes": [2, 2]}}])"}};
  return all;
}

// Masks a layer so that every third weight is kept.
template <class Layer>
const Layer& with_mask(Layer& layer) {
  const Tensor mask = Tensor::zeros(layer.weight().value().shape(), DType::u8);
  for (std::int64_t i = 0; i < mask.numel(); i += 3) mask.data<std::uint8_t>()[i] = 1;
  layer.weight().set_mask(mask);
  return layer;
}

}  // namespace

bool accepts_network(std::string_view bytes) {
  const MemoryLimit limit;
  const bool whole = check(bytes);
  const std::size_t end = std::min(bytes.find('\0'), bytes.size());
  const std::string_view input = bytes.substr(std::min(end + 1, bytes.size()));
  std::string file;
  const bool made = accepted([&] { file = file_of(bytes.substr(0, end), input); });
  return (made && check(file)) || whole;
}

void network(std::string_view bytes) { accepts_network(bytes); }

std::vector<std::string> network_seeds() {
  std::vector<std::string> seeds;
  const auto add_file = [&](Module& model, const Shape& input) {
    const std::string file = encode_network(model, input);
    const SafetensorsFile content = decode_safetensors(file, "seed");
    seeds.push_back(file);
    seeds.push_back(without_checksum(content));
    return content;
  };
  const auto add = [&](Module& model, const Shape& input) {
    const SafetensorsFile content = add_file(model, input);
    seeds.push_back(content.metadata.at(kNetworkKey) + '\0' + content.metadata.at(kInputKey));
  };
  for (const Sample& sample : samples()) {
    add(*build_model({.form = models::LayerList{.layers = parse_json(sample.layers, "seed")}}, sample.input), sample.input);
  }
  Residual residual({.relu = true});  // no list of layers can express it
  residual.add_child("body", make_basic_block({.in = 2, .out = 4, .stride = 2, .shortcut = "option_a"}));
  residual.add_child("shortcut", make_bottleneck({.in = 2, .out = 4, .stride = 2, .shortcut = "projection"}));
  add(residual, {1, 4, 4, 2});
  Sequential sparse;
  Conv2d conv({.in = 2, .out = 4, .padding = {1, 1}});
  Linear linear({.in = 36, .out = 3});
  sparse.add_child("conv", SparseConv2d::of(with_mask(conv)));
  sparse.add_child("flatten", std::make_unique<Flatten>());
  sparse.add_child("fc", SparseLinear::of(with_mask(linear)));
  add_file(sparse, {1, 3, 3, 2});  // its masks are in the file, so the tree alone is no seed
  return seeds;
}

}  // namespace tessera::fuzz
