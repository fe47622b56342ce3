#include "train/onnx/encode.h"

#include "core/support/error.h"

#if TESSERA_HAS_ONNX
#include <onnx/checker.h>
#include <onnx/onnx_pb.h>

namespace tessera {
namespace {

constexpr std::int64_t kMostBytes = (std::int64_t{1} << 31) - (std::int64_t{1} << 20);  // protobuf's limit, less the nodes' share

int type_of(OnnxType type) {
  switch (type) {
    case OnnxType::f32: return onnx::TensorProto::FLOAT;
    case OnnxType::i64: return onnx::TensorProto::INT64;
    case OnnxType::boolean: return onnx::TensorProto::BOOL;
  }
  throw InternalError("onnx: an unknown type");
}

void encode_port(const OnnxPort& port, onnx::ValueInfoProto& out) {
  out.set_name(port.name);
  onnx::TypeProto::Tensor& tensor = *out.mutable_type()->mutable_tensor_type();
  tensor.set_elem_type(type_of(port.type));
  for (const OnnxSize& size : port.sizes) {
    onnx::TensorShapeProto::Dimension& axis = *tensor.mutable_shape()->add_dim();
    if (const auto* const name = std::get_if<std::string>(&size)) {
      axis.set_dim_param(*name);
    } else {
      axis.set_dim_value(std::get<std::int64_t>(size));
    }
  }
}

void encode_tensor(const OnnxTensor& tensor, onnx::TensorProto& out) {
  out.set_name(tensor.name);
  out.set_data_type(type_of(tensor.type));
  for (const std::int64_t size : tensor.values.shape()) out.add_dims(size);
  out.set_raw_data(tensor.values.raw(), tensor.values.bytes());
}

void encode_attribute(const std::string& name, const OnnxAttribute& value, onnx::AttributeProto& out) {
  out.set_name(name);
  if (const auto* const number = std::get_if<float>(&value)) {
    out.set_type(onnx::AttributeProto::FLOAT);
    out.set_f(*number);
  } else if (const auto* const whole = std::get_if<std::int64_t>(&value)) {
    out.set_type(onnx::AttributeProto::INT);
    out.set_i(*whole);
  } else {
    out.set_type(onnx::AttributeProto::INTS);
    for (const std::int64_t item : std::get<std::vector<std::int64_t>>(value)) out.add_ints(item);
  }
}

void encode_node(const OnnxNode& node, onnx::NodeProto& out) {
  out.set_op_type(node.op);
  out.set_name(node.name);
  for (const std::string& input : node.inputs) out.add_input(input);
  for (const std::string& output : node.outputs) out.add_output(output);
  for (const auto& [name, value] : node.attributes) encode_attribute(name, value, *out.add_attribute());
}

void check_size(const OnnxGraph& graph) {
  std::int64_t bytes = 0;
  for (const OnnxTensor& tensor : graph.initializers) bytes += static_cast<std::int64_t>(tensor.values.bytes());
  for (const auto& [key, value] : graph.metadata) bytes += std::ssize(value);
  TESSERA_CHECK(bytes <= kMostBytes, ConfigError, "export: the network has ", bytes, " bytes of weights; an ONNX file holds ",
                kMostBytes, " at most");
}

}  // namespace

bool has_onnx() noexcept { return true; }

std::string encode_onnx(const OnnxGraph& graph, const std::string& producer) {
  check_size(graph);
  onnx::ModelProto model;
  model.set_ir_version(kOnnxIr);
  model.set_producer_name("tessera");
  model.set_producer_version(producer);
  onnx::OperatorSetIdProto& operators = *model.add_opset_import();
  operators.set_domain("");
  operators.set_version(kOnnxOpset);
  onnx::GraphProto& out = *model.mutable_graph();
  out.set_name("tessera");
  for (const OnnxPort& port : graph.inputs) encode_port(port, *out.add_input());
  for (const OnnxPort& port : graph.outputs) encode_port(port, *out.add_output());
  for (const OnnxTensor& tensor : graph.initializers) encode_tensor(tensor, *out.add_initializer());
  for (const OnnxNode& node : graph.nodes) encode_node(node, *out.add_node());
  for (const auto& [key, value] : graph.metadata) {
    onnx::StringStringEntryProto& entry = *model.add_metadata_props();
    entry.set_key(key);
    entry.set_value(value);
  }
  try {
    onnx::checker::check_model(model);
  } catch (const std::exception& error) {
    throw InternalError(str("onnx: the checker refuses the model: ", error.what()));
  }
  return model.SerializeAsString();
}

}  // namespace tessera

#else

namespace tessera {

bool has_onnx() noexcept { return false; }

std::string encode_onnx(const OnnxGraph&, const std::string&) {
  throw ConfigError(
      "export: this build of tessera has no ONNX; install libonnx-dev, libprotobuf-dev and protobuf-compiler, which "
      "scripts/install_dependencies does, and configure it again");
}

}  // namespace tessera

#endif
