#include <algorithm>
#include <tuple>

#include "core/config/read.h"
#include "core/support/error.h"

namespace tessera {

std::string to_string(const ConfigProblem& problem) {
  const std::string where = to_string(problem.mark);
  return str(where, where.empty() ? "" : ": ", problem.path, problem.path.empty() ? "" : ": ", problem.message);
}

void throw_config_error(const std::vector<ConfigProblem>& problems) {
  std::vector<ConfigProblem> sorted = problems;
  std::stable_sort(sorted.begin(), sorted.end(), [](const ConfigProblem& a, const ConfigProblem& b) {
    return std::tie(a.mark.file, a.mark.line, a.mark.column) < std::tie(b.mark.file, b.mark.line, b.mark.column);
  });
  std::string message;
  for (const ConfigProblem& problem : sorted) message += str(message.empty() ? "" : "\n", to_string(problem));
  throw ConfigError(message);
}

}  // namespace tessera
