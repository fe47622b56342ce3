#include "train/report/export_onnx.h"

#include "core/io/atomic_file.h"
#include "core/support/error.h"
#include "train/onnx/encode.h"
#include "train/run/environment.h"

namespace tessera {

void export_onnx(Vfs& vfs, Module& model, const Shape& input, const std::optional<NetworkUse>& use,
                 const std::filesystem::path& file, const OnnxOptions& options) {
  TESSERA_CHECK(!vfs.exists(file), ConfigError, "export: ", file.string(), " is there already; give another file");
  OnnxGraph graph = onnx_graph(model, input, options);
  graph.metadata["tessera.version"] = version_text();
  if (use) {
    graph.metadata["tessera.task"] = use->task;
    graph.metadata["tessera.precision"] = use->precision;
    for (const Value::Entry& entry : use->data.as_map()) graph.metadata["tessera." + entry.key] = to_json(entry.value);
  }
  const std::vector<OnnxPiece> pieces = encode_onnx(graph, version_text());
  std::error_code error;
  if (file.has_parent_path()) std::filesystem::create_directories(file.parent_path(), error);
  TESSERA_CHECK(!error, IoError, "export: cannot create ", file.parent_path().string(), ": ", error.message());
  write_atomically(vfs, file, [&pieces](WritableFile& out) {
    for (const OnnxPiece& piece : pieces) {
      out.write(piece.text);
      if (piece.values.defined()) out.write({static_cast<const char*>(piece.values.raw()), piece.values.bytes()});
    }
  });
}

}  // namespace tessera
