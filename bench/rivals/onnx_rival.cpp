#include "bench/rivals/onnx_rival.h"

#include "bench/result_lines.h"
#include "core/support/error.h"

namespace tessera::bench {
namespace {

std::vector<std::string> arguments(const OnnxProgram& program, const OnnxQuestion& question, const OnnxWay& way) {
  TESSERA_CHECK(std::filesystem::exists(program.python), ConfigError, "ONNX Runtime: there is no interpreter ", program.python,
                "; name another with --python");
  std::vector<std::string> words{program.python,   program.script, question.model.string(), question.batch.string(), "--threads",
                                 str(way.threads), "--shape"};
  for (const std::int64_t size : question.shape) words.push_back(str(size));
  if (way.spinning) words.emplace_back("--spinning");
  return words;
}

}  // namespace

std::string to_string(const OnnxWay& way) {
  if (way.threads == 1) return "1 thread";
  return str(way.threads, " threads that ", way.spinning ? "spin" : "sleep");
}

std::vector<OnnxWay> onnx_ways(int threads) {
  if (threads == 1) return {{1, false}};
  return {{threads, true}, {threads, false}, {1, false}};
}

OnnxRival::OnnxRival(const OnnxProgram& program, const OnnxQuestion& question, const OnnxWay& way)
    : way_(way), child_(arguments(program, question, way), {}), environment_(parse_json(child_.read_line(), "ONNX Runtime")) {
  const Value* const missing = environment_.find("missing");
  TESSERA_CHECK(missing == nullptr, ConfigError, "ONNX Runtime: ", program.python,
                " cannot import it: ", missing ? missing->as_string() : std::string(),
                "; install PyPI's onnxruntime in a virtual environment and name its interpreter with --python");
}

Value OnnxRival::ask(const std::string& line) { return child_.ask(line, "ONNX Runtime"); }

std::vector<double> OnnxRival::values() { return numbers(ask("values").at("values")); }

std::vector<double> OnnxRival::run(std::int64_t count) { return numbers(ask(str("time ", count)).at("ms")); }

}  // namespace tessera::bench
