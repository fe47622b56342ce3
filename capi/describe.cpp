// Builds the answer of tessera_describe(). include/tessera.h lists its keys.
#include "capi/trained_network.h"
#include "core/config/read.h"
#include "layers/compressed.h"

namespace tessera::capi {
namespace {

std::vector<std::int64_t> sizes_of(const Shape& shape) { return {shape.begin(), shape.end()}; }

Shape batch_of_one(const Input& input) { return batch_shape(input.field.shape, 1); }

struct InputRow {
  std::string name;
  std::string dtype;
  std::vector<std::int64_t> shape;
  bool optional = false;
  bool pixels = false;
  std::optional<std::int64_t> limit = {};
  std::optional<std::int64_t> longest = {};

  void fields(Fields& f) {
    f.add("name", name, {.help = "by which tessera_run() takes it"});
    f.add("dtype", dtype, {.help = "of its elements"});
    f.add("shape", shape, {.help = "of one sample"});
    f.add("optional", optional, {.help = "whether it may be left out"});
    f.add("pixels", pixels, {.help = "whether uint8 pixels are taken, too"});
    f.add("limit", limit, {.help = "of whole numbers: they are in [0, limit)"});
    f.add("longest", longest, {.help = "positions of the longest sequence; 0: any length will do"});
  }
};

struct OutputRow {
  std::string name = kOutputName;
  std::string dtype = "float32";
  std::vector<std::int64_t> shape;

  void fields(Fields& f) {
    f.add("name", name, {.help = "by which tessera_run() takes it"});
    f.add("dtype", dtype, {.help = "of its elements"});
    f.add("shape", shape, {.help = "of the answer to one sample"});
  }
};

struct LayerRow {
  std::string path;
  std::string kind;
  Value ranks = Value::map();
  std::int64_t parameters = 0;

  void fields(Fields& f) {
    f.add("path", path, {.help = "in the network"});
    f.add("kind", kind, {.help = "of layer"});
    f.add("ranks", ranks, {.help = "by name; of a sparse layer the weights that it keeps"});
    f.add("parameters", parameters, {.help = "numbers that were trained"});
  }
};

struct Description {
  std::optional<std::string> task;
  Value origin;
  std::vector<std::string> passed_over;
  std::string precision;
  std::vector<InputRow> inputs = {};
  std::vector<OutputRow> outputs = {};
  std::int64_t parameters = 0;
  std::int64_t macs = 0;
  std::vector<LayerRow> layers;

  void fields(Fields& f) {
    f.add("task", task, {.help = "what the network was trained for", .nullable = true});
    f.add("origin", origin, {.help = "where it is from"});
    f.add("passed_over", passed_over, {.help = "newer checkpoints that are damaged"});
    f.add("precision", precision, {.help = "in which it computes"});
    f.add("inputs", inputs, {.help = "what it reads"});
    f.add("outputs", outputs, {.help = "what it answers"});
    f.add("parameters", parameters, {.help = "numbers that were trained"});
    f.add("macs", macs, {.help = "multiply-adds of one sample"});
    f.add("compressed_layers", layers, {.help = "layers that are held in a compressed form"});
  }
};

// The smallest sequence limit of the network's modules; 0 if none has a limit.
std::int64_t longest_sequence(Module& model) {
  std::int64_t longest = 0;
  for_each_module(model, [&](const Module& module) {
    const std::int64_t limit = module.sequence_limit();
    if (limit > 0 && (longest == 0 || limit < longest)) longest = limit;
  });
  return longest;
}

InputRow row_of(const Input& input, Module& model) {
  InputRow row{input.field.name, name_in_c(input.field.dtype), sizes_of(input.field.shape), input.optional,
               input.pixels.has_value()};
  if (input.field.limit > 0) row.limit = input.field.limit;
  if (input.any_length) row.longest = longest_sequence(model);
  return row;
}

std::int64_t parameters_below(Module& layer) {
  std::int64_t count = 0;
  for (const NamedParameter& entry : named_parameters(layer)) count += entry.parameter->value().numel();
  return count;
}

std::vector<LayerRow> compressed_layers(Module& model) {
  std::vector<LayerRow> rows;
  for_each_module(model, [&](Module& module) {
    const CompressedLayer* const layer = as_compressed(module);
    if (layer == nullptr) return;
    rows.push_back({module.path(), std::string(module.kind()), to_value(layer->ranks()), parameters_below(module)});
  });
  return rows;
}

}  // namespace

std::string name_in_c(DType dtype) { return dtype == DType::i64 ? "int64" : dtype == DType::u8 ? "uint8" : "float32"; }

Value description_of(const TrainedNetwork& network) {
  const Input& first = network.inputs.front();
  const Cost cost = total_cost(*network.model, batch_of_one(first));
  Description description{.task = network.use.task.empty() ? std::nullopt : std::optional(network.use.task),
                          .origin = network.origin,
                          .passed_over = network.passed_over,
                          .precision = network.use.precision,
                          .parameters = cost.parameters,
                          .macs = cost.macs,
                          .layers = compressed_layers(*network.model)};
  for (const Input& input : network.inputs) description.inputs.push_back(row_of(input, *network.model));
  OutputRow output;
  output.shape = sizes_of(network.output_shape(batch_of_one(first)).erase(0));
  description.outputs.push_back(output);
  Value json = write(description);
  for (const Value::Entry& entry : network.use.data.as_map()) json.set(entry.key, entry.value);
  return json;
}

}  // namespace tessera::capi
