#include "train/onnx/network.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <set>

#include "core/mask_bits.h"
#include "core/support/error.h"
#include "layers/activation.h"
#include "layers/builtin.h"
#include "layers/sequential.h"
#include "tests/support/hex.h"
#include "tests/support/message_of.h"
#include "tests/train/onnx/onnx_networks.h"
#include "tests/train/run/weights_files.h"
#include "train/onnx/emitter.h"
#include "train/onnx/encode.h"

namespace tessera {
namespace {

using testing::onnx_input;
using testing::onnx_network;
using testing::onnx_networks;

OnnxGraph graph_of(const std::string& name, const OnnxOptions& options = {}) {
  return onnx_graph(*onnx_network(name), onnx_input(name), options);
}

std::vector<std::string> operators_of(const OnnxGraph& graph) {
  std::vector<std::string> operators;
  for (const OnnxNode& node : graph.nodes) operators.push_back(node.op);
  return operators;
}

std::int64_t count_of(const OnnxGraph& graph, const std::string& op) { return std::ranges::count(operators_of(graph), op); }

// The shapes of the initialisers that are weights. Constants have a '/' in their name.
std::map<std::string, Shape> weights_of(const OnnxGraph& graph) {
  std::map<std::string, Shape> shapes;
  for (const OnnxTensor& tensor : graph.initializers) {
    if (tensor.name.find('/') == std::string::npos) shapes.emplace(tensor.name, tensor.values.shape());
  }
  return shapes;
}

const OnnxTensor& initializer(const OnnxGraph& graph, const std::string& name) {
  return *std::ranges::find(graph.initializers, name, &OnnxTensor::name);
}

TEST(OnnxForms, EveryKindOfLayerHasOne) {
  std::set<std::string_view> without;
  const Registry<Module> layers = builtin_layers();
  for (const std::string_view kind : layers.names()) {
    if (!onnx_forms().contains(kind)) without.insert(kind);
  }
  EXPECT_EQ(without, std::set<std::string_view>{}) << "train/onnx/emit_*.cpp";
  for (const auto& [kind, form] : onnx_forms()) EXPECT_TRUE(layers.contains(kind)) << kind;
}

TEST(OnnxForms, TheNetworksOfTheseTestsHaveEveryKind) {
  std::set<std::string> seen;
  for (const testing::OnnxNetwork& network : onnx_networks()) {
    for_each_module(*network.make(), [&](const Module& module) { seen.emplace(module.kind()); });
  }
  const Registry<Module> layers = builtin_layers();
  for (const std::string_view kind : layers.names()) EXPECT_TRUE(seen.contains(std::string(kind))) << kind;
}

class Unheard final : public Activation {
 public:
  std::string_view kind() const override { return "unheard"; }
  Var forward(const Var& x, const Context&) override { return x; }
};

TEST(OnnxForms, ALayerOfAnotherKindIsNamed) {
  Sequential model;
  model.add_child("relu", std::make_unique<Relu>());
  model.add_child("odd", std::make_unique<Unheard>());
  EXPECT_EQ(message_of<ConfigError>([&] {
              onnx_graph(model, {1, 4}, {.keep_batch_norm = true});
            }),
            "export: layer 'odd' is unheard, which has no form in ONNX");
}

// ONNX requires that nodes come after their inputs and that every name is unique.
TEST(OnnxGraph, NamesAreMadeOnceAndBeforeTheyAreRead) {
  for (const testing::OnnxNetwork& network : onnx_networks()) {
    SCOPED_TRACE(network.name);
    const OnnxGraph graph = graph_of(network.name);
    std::set<std::string> made, nodes, read;
    for (const OnnxPort& port : graph.inputs) EXPECT_TRUE(made.insert(port.name).second) << port.name;
    for (const OnnxTensor& tensor : graph.initializers) {
      EXPECT_TRUE(made.insert(tensor.name).second || tensor.name == kOnnxKeyMask) << tensor.name;
    }
    for (const OnnxNode& node : graph.nodes) {
      EXPECT_TRUE(nodes.insert(node.name).second) << node.name;
      for (const std::string& input : node.inputs) EXPECT_TRUE(made.contains(input)) << input << " of " << node.name;
      read.insert(node.inputs.begin(), node.inputs.end());
      for (const std::string& output : node.outputs) EXPECT_TRUE(made.insert(output).second) << output;
    }
    for (const OnnxTensor& tensor : graph.initializers) EXPECT_TRUE(read.contains(tensor.name)) << tensor.name;
    EXPECT_TRUE(made.contains(kOnnxScores));
  }
}

TEST(OnnxGraph, ImagesAreTransposedOnceInFrontAndNormsAreFolded) {
  const OnnxGraph graph = graph_of("resnet");
  ASSERT_EQ(graph.inputs.size(), 1u);
  EXPECT_EQ(graph.inputs[0].name, "image");
  EXPECT_EQ(graph.inputs[0].sizes, (std::vector<OnnxSize>{"batch", std::int64_t{16}, std::int64_t{16}, std::int64_t{3}}));
  EXPECT_EQ(graph.outputs[0].sizes, (std::vector<OnnxSize>{"batch", std::int64_t{5}}));
  EXPECT_EQ(graph.nodes.front().op, "Transpose");
  EXPECT_EQ(count_of(graph, "Transpose"), 1);
  EXPECT_EQ(count_of(graph, "BatchNormalization"), 0);
  EXPECT_EQ(count_of(graph, "Conv"), 7);
  EXPECT_EQ(weights_of(graph).at("conv1.weight"), (Shape{16, 3, 3, 3}));
  EXPECT_EQ(weights_of(graph).at("conv1.bias"), (Shape{16}));
  const OnnxGraph kept = graph_of("resnet", {.keep_batch_norm = true});
  EXPECT_EQ(count_of(kept, "BatchNormalization"), 7);
  EXPECT_FALSE(weights_of(kept).contains("conv1.bias"));
}

TEST(OnnxGraph, AConvolutionSaysAllOfItsWindow) {
  const OnnxGraph graph = graph_of("tucker2");
  const auto core =
      std::ranges::find_if(graph.nodes, [](const OnnxNode& n) { return n.inputs.size() > 1 && n.inputs[1] == "0.core"; });
  ASSERT_NE(core, graph.nodes.end());
  const auto pair = [](std::int64_t a, std::int64_t b) { return OnnxAttribute(std::vector<std::int64_t>{a, b}); };
  EXPECT_EQ(core->attributes, (OnnxAttributes{{"kernel_shape", pair(3, 3)},
                                              {"strides", pair(1, 1)},
                                              {"pads", std::vector<std::int64_t>{0, 0, 0, 0}},
                                              {"dilations", pair(2, 2)},
                                              {"group", std::int64_t{1}}}));
}

TEST(OnnxGraph, FactoredLayersStayChains) {
  const std::map<std::string, Shape> tucker = weights_of(graph_of("tucker2"));
  EXPECT_EQ(tucker, (std::map<std::string, Shape>{{"0.bias", {6}},
                                                  {"0.core", {3, 2, 3, 3}},
                                                  {"0.in_factor", {2, 4, 1, 1}},
                                                  {"0.out_factor", {6, 3, 1, 1}},
                                                  {"4.bias", {3}},
                                                  {"4.weight", {6, 3}}}));
  EXPECT_EQ(weights_of(graph_of("cp")).at("0.vertical"), (Shape{5, 1, 3, 1}));
  const OnnxGraph cores = graph_of("tt_conv", {.keep_batch_norm = true});
  EXPECT_EQ(weights_of(cores).at("0.core1"), (Shape{1, 2, 2}));
  EXPECT_EQ(count_of(cores, "Conv"), 3);
}

// Folding the norm into the filters would turn the train into a dense weight.
TEST(OnnxGraph, ATrainKeepsTheNormThatWouldComposeIt) {
  const OnnxGraph graph = graph_of("tt_garipov");
  EXPECT_EQ(count_of(graph, "BatchNormalization"), 1);
  const std::map<std::string, Shape> weights = weights_of(graph);
  EXPECT_FALSE(weights.contains("0.weight"));
  EXPECT_EQ(weights.at("0.core1"), (Shape{1, 6, 4}));
}

TEST(OnnxGraph, MasksStandInTheMetadataInTheInitialisersOrder) {
  const OnnxGraph graph = graph_of("sparse");
  const Value masks = parse_json(graph.metadata.at(kOnnxSparsity), "metadata");
  ASSERT_EQ(masks.as_map().size(), 3u);
  for (const Value::Entry& entry : masks.as_map()) {
    SCOPED_TRACE(entry.key);
    const Tensor& values = initializer(graph, entry.key).values;
    EXPECT_EQ(entry.value.at("elements").as_int(), values.numel());
    EXPECT_EQ(entry.value.at("kept").as_int(), (values.numel() + 2) / 3);
    const Tensor mask = Tensor::zeros(values.shape(), DType::u8);
    for (std::int64_t i = 0; i < values.numel(); ++i) mask.data<std::uint8_t>()[i] = values.data<float>()[i] != 0 ? 1 : 0;
    const Tensor bits = packed_bits(mask);
    const std::string bytes(reinterpret_cast<const char*>(bits.data<std::uint8_t>()), static_cast<std::size_t>(bits.numel()));
    EXPECT_EQ(entry.value.at("mask").as_string(), base64(bytes)) << "no kept element is zero here";
  }
  EXPECT_FALSE(graph_of("resnet").metadata.contains(kOnnxSparsity));
}

TEST(OnnxGraph, OnlyAnEncoderOfTextHasAMaskOfPadding) {
  const OnnxGraph bert = graph_of("bert");
  ASSERT_EQ(bert.inputs.size(), 2u);
  EXPECT_EQ(bert.inputs[0].name, "tokens");
  EXPECT_EQ(bert.inputs[0].type, OnnxType::i64);
  EXPECT_EQ(bert.inputs[1].name, "key_mask");
  EXPECT_EQ(bert.inputs[1].type, OnnxType::boolean);
  EXPECT_EQ(initializer(bert, "key_mask").values.shape(), (Shape{1, 1})) << "of every sample and position";
  for (const char* const name : {"gpt", "vit", "linear"}) EXPECT_EQ(graph_of(name).inputs.size(), 1u) << name;
  EXPECT_EQ(graph_of("linear").inputs[0].name, "x");
}

TEST(OnnxGraph, ATiedTableIsOneInitialiser) {
  const OnnxGraph graph = graph_of("gpt");
  EXPECT_EQ(weights_of(graph).at("tokens.weight"), (Shape{31, 16}));
  EXPECT_FALSE(weights_of(graph).contains("head.weight"));
}

TEST(OnnxGraph, TextIsOfAnyLengthThatTheNetworkReads) {
  const std::vector<OnnxSize> any{"batch", "length"};
  const OnnxGraph gpt = graph_of("gpt");
  EXPECT_EQ(gpt.inputs[0].sizes, any);
  EXPECT_EQ(gpt.outputs[0].sizes, (std::vector<OnnxSize>{"batch", "length", std::int64_t{31}}));
  EXPECT_EQ(weights_of(gpt).at("positions.weight"), (Shape{12, 16})) << "of all of its positions";
  EXPECT_EQ(graph_of("bert").inputs[1].sizes, (std::vector<OnnxSize>{"mask_batch", "mask_length"}));
  for (const char* const name : {"llama", "gpt_sparse_whole", "near", "tt_embedding"}) {
    EXPECT_EQ(graph_of(name).inputs[0].sizes, any) << name;
  }
}

TEST(OnnxGraph, ALayerThatTakesOneLengthFixesIt) {
  const auto model = build_model(
      testing::layers_config(R"([{"embedding": {"vocabulary": 9, "width": 4}}, "flatten", {"linear": {"out": 3}}])"), {1, 5});
  const OnnxGraph graph = onnx_graph(*model, {1, 5}, {});
  EXPECT_EQ(graph.inputs[0].sizes, (std::vector<OnnxSize>{"batch", std::int64_t{5}}));
  EXPECT_EQ(graph.outputs[0].sizes, (std::vector<OnnxSize>{"batch", std::int64_t{3}}));
  EXPECT_EQ(count_of(graph, "Shape"), 0);
  // Its attention holds 12 positions, but its table of pairs was made for 10.
  EXPECT_EQ(graph_of("gpt_sparse").inputs[0].sizes, (std::vector<OnnxSize>{"batch", std::int64_t{10}}));
}

TEST(OnnxGraph, LayersThatSeeTheSamePairsShareThem) {
  for (const char* const name : {"gpt", "gpt_sparse"}) {
    const OnnxGraph graph = graph_of(name);
    const auto is_sight = [](const OnnxTensor& tensor) { return tensor.name.starts_with("sight/"); };
    const bool sparse = std::string(name) == "gpt_sparse";
    EXPECT_EQ(std::ranges::count_if(graph.initializers, is_sight), sparse ? 2 : 0) << name << ": each sparse layer drew its own";
    EXPECT_EQ(count_of(graph, "Less"), sparse ? 0 : 1) << name;
    EXPECT_EQ(count_of(graph, "Shape"), sparse ? 0 : 1) << name;
    EXPECT_EQ(count_of(graph, "Where"), 2) << name;
  }
}

TEST(OnnxGraph, AnswersThatAreImagesLieAsOursDo) {
  const OnnxGraph graph = graph_of("image_to_image");
  EXPECT_EQ(operators_of(graph), (std::vector<std::string>{"Transpose", "Conv", "Relu", "Transpose"}));
  EXPECT_EQ(graph.outputs[0].sizes, (std::vector<OnnxSize>{"batch", std::int64_t{7}, std::int64_t{6}, std::int64_t{3}}));
  EXPECT_EQ(operators_of(graph_of("nothing")), std::vector<std::string>{"Identity"});
  EXPECT_EQ(operators_of(graph_of("pixels")), (std::vector<std::string>{"Reshape", "MatMul", "Add"}));
}

TEST(OnnxBuilder, NumbersThatPrintAlikeAreApart) {
  OnnxBuilder graph;
  EXPECT_NE(graph.number(1.0000001).name, graph.number(1.0000002).name);
  EXPECT_EQ(graph.number(0.5).name, graph.number(0.5).name);
}

TEST(OnnxGraph, AnInputWithoutABatchIsRefused) {
  EXPECT_EQ(message_of<ConfigError>([] { onnx_graph(*onnx_network("linear"), {24}, {}); }),
            "export: the network's input is [24]; needs [n, ...]");
}

TEST(OnnxGraph, AWeightThatIsNotFiniteIsNamed) {
  const auto fault_of = [](const std::function<void(Module&)>& spoil, const OnnxOptions& options) {
    const auto model = build_model(
        testing::layers_config(R"([{"conv2d": {"out": 2, "kernel": 3, "name": "conv"}}, {"batch_norm": {"name": "bn"}}])"),
        {1, 5, 5, 1});
    testing::randomise(*model);
    spoil(*model);
    return message_of<NumericError>([&] { onnx_graph(*model, {1, 5, 5, 1}, options); });
  };
  const OnnxOptions kept{.keep_batch_norm = true};
  const auto spoil_weight = [](Module& model) { model.child("conv").parameter("weight").value().fill(INFINITY); };
  EXPECT_EQ(fault_of(spoil_weight, kept), "export: 'conv.weight' contains NaN or Inf");
  EXPECT_EQ(fault_of(spoil_weight, {}), "fold: 'conv.weight' contains NaN or Inf");
  const auto spoil_statistics = [](Module& model) { model.child("bn").buffers().front()->value.fill(NAN); };
  EXPECT_EQ(fault_of(spoil_statistics, kept), "export: 'bn.running_mean' contains NaN or Inf");
  const auto large = [](Module& model) {
    model.child("conv").parameter("weight").value().fill(1e30);
    model.child("bn").parameter("weight").value().fill(1e30);
  };
  EXPECT_EQ(fault_of(large, {}), "export: 'conv.weight' contains NaN or Inf") << "which folding made";
  EXPECT_EQ(fault_of(large, kept), "");
}

TEST(OnnxBase64, IsThatOfTheStandard) {
  const std::vector<std::pair<std::string, std::string>> vectors{{"", ""},        {"f", "Zg=="},        {"fo", "Zm8="},
                                                                 {"foo", "Zm9v"}, {"foob", "Zm9vYg=="}, {"\xff\xfe\xfd", "//79"}};
  for (const auto& [bytes, text] : vectors) EXPECT_EQ(base64(bytes), text);
}

TEST(OnnxFile, HoldsWhatTheGraphHolds) {
  OnnxGraph graph;
  graph.inputs = {{"x", OnnxType::f32, {"batch", std::int64_t{2}}}};
  graph.outputs = {{"y", OnnxType::f32, {"batch", std::int64_t{2}}}};
  graph.nodes = {
      {"Elu", "n", {"x"}, {"y"}, {{"alpha", 0.5f}, {"axis", std::int64_t{-1}}, {"pads", std::vector<std::int64_t>{1, 2}}}}};
  graph.initializers = {{"w", OnnxType::i64, Tensor::from(std::vector<std::int64_t>{300}, {1})}};
  graph.metadata = {{"k", "v"}};
  const std::vector<OnnxPiece> pieces = encode_onnx(graph, "1");
  ASSERT_EQ(pieces.size(), 2u);
  EXPECT_TRUE(pieces[0].values.shares_storage(graph.initializers[0].values)) << "weights are not in memory once more";
  EXPECT_FALSE(pieces[1].values.defined());
  const std::string values(static_cast<const char*>(pieces[0].values.raw()), pieces[0].values.bytes());
  EXPECT_EQ(testing::hex(pieces[0].text + values + pieces[1].text),
            "08071207746573736572611a013142040a00100d"  // format version, producer, operator set
            "72060a016b120176"  // metadata
            "3a9601"  // the graph
            "0a440a01781201791a016e2203456c75"  // the node
            "2a0f0a05616c706861150000003fa00101"  // alpha, a float
            "2a140a046178697318ffffffffffffffffff01a00102"  // axis, an integer
            "2a0d0a047061647340014002a00107"  // pads, a list of integers
            "120774657373657261"  // name of the graph
            "2a11080110074201774a082c01000000000000"  // w
            "5a180a017812130a110801120d0a07120562617463680a020802"  // the input
            "62180a017912130a110801120d0a07120562617463680a020802");  // the output
}

}  // namespace
}  // namespace tessera
