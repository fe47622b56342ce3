// Debian's Python as an oracle: which interpreter has a package, and what a script prints.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <string>

namespace tessera::testing {

// Debian's packages belong to Debian's interpreter; another python3 may stand before it on PATH. `first` is asked before both: a
// virtual environment has what Debian lacks. "" when none has the packages.
inline std::string python_with(const std::string& packages, const std::string& first = {}) {
  for (const std::string& python : {first, std::string("/usr/bin/python3"), std::string("python3")}) {
    if (python.empty()) continue;
    if (std::system((python + " -c 'import " + packages + "' 2>/dev/null").c_str()) == 0) return python;
  }
  return "";
}

// Standard output, and the exit status when it is not 0.
inline std::string output_of(const std::string& command) {
  std::string text;
  FILE* pipe = ::popen(command.c_str(), "r");
  if (!pipe) return "popen failed";
  for (int c = std::fgetc(pipe); c != EOF; c = std::fgetc(pipe)) text += static_cast<char>(c);
  const int status = ::pclose(pipe);
  return status == 0 ? text : text + "exit status " + std::to_string(status);
}

}  // namespace tessera::testing
