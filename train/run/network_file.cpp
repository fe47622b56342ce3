#include "train/run/network_file.h"

#include <algorithm>
#include <span>
#include <vector>

#include "core/config/read.h"
#include "core/support/counting.h"
#include "core/support/error.h"
#include "layers/model_tree.h"
#include "train/run/model_state.h"

namespace tessera {
namespace {

constexpr std::size_t kMostAxes = 4;

std::optional<Value> json_at(const SafetensorsFile& file, const char* key, const std::string& origin) {
  const auto found = file.metadata.find(key);
  if (found == file.metadata.end()) return std::nullopt;
  return parse_json(found->second, str(origin, ": ", key));
}

}  // namespace

void NetworkUse::fields(Fields& f) {
  f.add("task", task, {.help = "that it learnt", .required = true});
  f.add("precision", precision, {.help = "that the run computed in"});
  f.add("data", data, {.help = "of samples and answers"});
  f.add("decisions", decisions, {.help = "choices of a clock"});
}

std::string encode_network(Module& model, const Shape& input, const std::optional<NetworkUse>& use) {
  SafetensorsFile file;
  file.metadata[kLayoutKey] = "OHWI";
  file.metadata[kNetworkKey] = to_json(describe(model));
  file.metadata[kInputKey] = to_json(Value::list(Value::List(input.begin(), input.end())));
  if (use) file.metadata[kUseKey] = to_json(write(*use));
  for (const auto& [name, tensor] : model_state(model).tensors) file.tensors[name] = tensor.to(Device::cpu());
  add_checksum(file);
  return encode_safetensors(file);
}

std::int64_t write_network(Vfs& vfs, Module& model, const Shape& input, const std::filesystem::path& path,
                           const std::optional<NetworkUse>& use) {
  const std::string bytes = encode_network(model, input, use);
  write_file_atomically(vfs, path, bytes);
  return static_cast<std::int64_t>(bytes.size());
}

std::optional<Value> tree_of(const SafetensorsFile& file, const std::string& origin) {
  return json_at(file, kNetworkKey, origin);
}

std::optional<Shape> input_of(const SafetensorsFile& file, const std::string& origin) {
  const std::optional<Value> list = json_at(file, kInputKey, origin);
  if (!list) return std::nullopt;
  const auto is_size = [](const Value& size) { return size.kind() == Value::Kind::integer && size.as_int() > 0; };
  TESSERA_CHECK(list->is_list() && std::ranges::all_of(list->as_list(), is_size) && list->as_list().size() <= kMostAxes, IoError,
                origin, ": ", kInputKey, " is ", to_json(*list), "; must be a list of up to ", kMostAxes, " sizes");
  std::vector<std::int64_t> sizes;
  for (const Value& size : list->as_list()) sizes.push_back(size.as_int());
  TESSERA_CHECK(can_be_counted(sizes), IoError, origin, ": ", kInputKey, " is ", to_json(*list),
                "; must have at most 2^40 elements");
  return Shape(std::span<const std::int64_t>(sizes));
}

std::optional<NetworkUse> use_of(const SafetensorsFile& file, const std::string& origin) {
  const std::optional<Value> keys = json_at(file, kUseKey, origin);
  if (!keys) return std::nullopt;
  NetworkUse use;
  std::vector<ConfigProblem> problems;
  read(*keys, use, "", problems);
  TESSERA_CHECK(problems.empty(), IoError, to_string(problems.front()));  // the mark of the problem names the file and the key
  TESSERA_CHECK(use.data.is_map() && use.decisions.is_map(), IoError, origin, ": ", kUseKey,
                ": data and decisions must be blocks");
  return use;
}

}  // namespace tessera
