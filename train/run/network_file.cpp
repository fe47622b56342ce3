#include "train/run/network_file.h"

#include "layers/model_tree.h"
#include "train/run/model_state.h"

namespace tessera {

std::int64_t write_network(Vfs& vfs, Module& model, const Shape& input, const std::filesystem::path& path) {
  SafetensorsFile file;
  file.metadata[kLayoutKey] = "OHWI";
  file.metadata[kNetworkKey] = to_json(describe(model));
  file.metadata[kInputKey] = to_json(Value::list(Value::List(input.begin(), input.end())));
  for (const auto& [name, tensor] : model_state(model).tensors) file.tensors[name] = tensor.to(Device::cpu());
  add_checksum(file);
  const std::string bytes = encode_safetensors(file);
  write_file_atomically(vfs, path, bytes);
  return static_cast<std::int64_t>(bytes.size());
}

std::optional<Value> tree_of(const SafetensorsFile& file, const std::string& origin) {
  const auto found = file.metadata.find(kNetworkKey);
  if (found == file.metadata.end()) return std::nullopt;
  return parse_json(found->second, origin + ": " + kNetworkKey);
}

}  // namespace tessera
