#include "train/onnx/encode.h"

#include <utility>

#include "core/io/protobuf.h"
#include "core/support/error.h"

namespace tessera {
namespace {

using protobuf::head_of_part, protobuf::part, protobuf::real, protobuf::whole_number;

constexpr std::int64_t kMostBytes = (std::int64_t{1} << 31) - (std::int64_t{1} << 20);  // protobuf's limit, less room for nodes

// Field numbers.
namespace model {
constexpr std::uint64_t kIrVersion = 1, kProducer = 2, kProducerVersion = 3, kGraph = 7, kOpset = 8, kMetadata = 14;
}
namespace opset {
constexpr std::uint64_t kDomain = 1, kVersion = 2;
}
namespace entry {
constexpr std::uint64_t kKey = 1, kValue = 2;
}
namespace graph_field {
constexpr std::uint64_t kNode = 1, kName = 2, kInitializer = 5, kInput = 11, kOutput = 12;
}
namespace node_field {
constexpr std::uint64_t kInput = 1, kOutput = 2, kName = 3, kOp = 4, kAttribute = 5;
}
namespace attribute {
constexpr std::uint64_t kName = 1, kReal = 2, kWhole = 3, kWholes = 8, kType = 20;
constexpr std::int64_t kOfReal = 1, kOfWhole = 2, kOfWholes = 7;  // values of kType
}  // namespace attribute
namespace tensor_field {
constexpr std::uint64_t kSize = 1, kType = 2, kName = 8, kRaw = 9;
}
namespace port_field {
constexpr std::uint64_t kName = 1, kType = 2;
constexpr std::uint64_t kTensorType = 1;  // a field of kType's message
constexpr std::uint64_t kElement = 1, kShape = 2;  // fields of kTensorType's message
constexpr std::uint64_t kAxis = 1;  // a field of kShape's message
constexpr std::uint64_t kSize = 1, kSizeName = 2;  // fields of kAxis's message
}  // namespace port_field

std::int64_t type_of(OnnxType type) {
  switch (type) {
    case OnnxType::f32: return 1;
    case OnnxType::i64: return 7;
    case OnnxType::boolean: return 9;
  }
  throw InternalError("onnx: an unknown type");
}

std::string encoded(const OnnxPort& port) {
  std::string shape;
  for (const OnnxSize& size : port.sizes) {
    const auto* const name = std::get_if<std::string>(&size);
    shape += part(port_field::kAxis, name != nullptr ? part(port_field::kSizeName, *name)
                                                     : whole_number(port_field::kSize, std::get<std::int64_t>(size)));
  }
  const std::string tensor = whole_number(port_field::kElement, type_of(port.type)) + part(port_field::kShape, shape);
  return part(port_field::kName, port.name) + part(port_field::kType, part(port_field::kTensorType, tensor));
}

// Encodes all but the values, which follow the returned bytes.
std::string encoded(const OnnxTensor& tensor) {
  std::string head;
  for (const std::int64_t size : tensor.values.shape()) head += whole_number(tensor_field::kSize, size);
  head += whole_number(tensor_field::kType, type_of(tensor.type)) + part(tensor_field::kName, tensor.name);
  head += head_of_part(tensor_field::kRaw, tensor.values.bytes());
  return head_of_part(graph_field::kInitializer, head.size() + tensor.values.bytes()) + head;
}

std::string encoded(const std::string& name, const OnnxAttribute& value) {
  std::string bytes = part(attribute::kName, name);
  if (const auto* const number = std::get_if<float>(&value)) {
    return bytes + real(attribute::kReal, *number) + whole_number(attribute::kType, attribute::kOfReal);
  }
  if (const auto* const whole = std::get_if<std::int64_t>(&value)) {
    return bytes + whole_number(attribute::kWhole, *whole) + whole_number(attribute::kType, attribute::kOfWhole);
  }
  for (const std::int64_t item : std::get<std::vector<std::int64_t>>(value)) bytes += whole_number(attribute::kWholes, item);
  return bytes + whole_number(attribute::kType, attribute::kOfWholes);
}

std::string encoded(const OnnxNode& node) {
  std::string bytes;
  for (const std::string& input : node.inputs) bytes += part(node_field::kInput, input);
  for (const std::string& output : node.outputs) bytes += part(node_field::kOutput, output);
  bytes += part(node_field::kName, node.name) + part(node_field::kOp, node.op);
  for (const auto& [name, value] : node.attributes) bytes += part(node_field::kAttribute, encoded(name, value));
  return bytes;
}

std::vector<OnnxPiece> encoded(const OnnxGraph& graph) {
  std::vector<OnnxPiece> pieces;
  std::string bytes;
  for (const OnnxNode& node : graph.nodes) bytes += part(graph_field::kNode, encoded(node));
  bytes += part(graph_field::kName, "tessera");
  for (const OnnxTensor& tensor : graph.initializers) {
    pieces.push_back({std::exchange(bytes, {}) + encoded(tensor), tensor.values});
  }
  for (const OnnxPort& port : graph.inputs) bytes += part(graph_field::kInput, encoded(port));
  for (const OnnxPort& port : graph.outputs) bytes += part(graph_field::kOutput, encoded(port));
  pieces.push_back({std::move(bytes)});
  return pieces;
}

std::size_t size_of(const std::vector<OnnxPiece>& pieces) {
  std::size_t size = 0;
  for (const OnnxPiece& piece : pieces) size += piece.text.size() + (piece.values.defined() ? piece.values.bytes() : 0);
  return size;
}

void check_size(const OnnxGraph& graph) {
  std::int64_t bytes = 0;
  for (const OnnxTensor& tensor : graph.initializers) bytes += static_cast<std::int64_t>(tensor.values.bytes());
  for (const auto& [key, value] : graph.metadata) bytes += std::ssize(value);
  TESSERA_CHECK(bytes <= kMostBytes, ConfigError, "export: the network has ", bytes, " bytes of weights; an ONNX file holds ",
                kMostBytes, " at most");
}

}  // namespace

std::vector<OnnxPiece> encode_onnx(const OnnxGraph& graph, const std::string& producer) {
  check_size(graph);
  std::string bytes =
      whole_number(model::kIrVersion, kOnnxIr) + part(model::kProducer, "tessera") + part(model::kProducerVersion, producer);
  bytes += part(model::kOpset, part(opset::kDomain, "") + whole_number(opset::kVersion, kOnnxOpset));
  for (const auto& [key, value] : graph.metadata) {
    bytes += part(model::kMetadata, part(entry::kKey, key) + part(entry::kValue, value));
  }
  std::vector<OnnxPiece> pieces = encoded(graph);
  pieces.front().text.insert(0, bytes + head_of_part(model::kGraph, size_of(pieces)));
  return pieces;
}

}  // namespace tessera
