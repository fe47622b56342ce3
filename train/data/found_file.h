// What stands for a path that a user names.
#pragma once

#include <string>

namespace tessera {

struct FoundFile {
  std::string path;
  std::string fault = {};  // it is no file, and why nobody knows what it is: a folder that cannot be listed, a link to nothing

  friend bool operator==(const FoundFile&, const FoundFile&) = default;
};

}  // namespace tessera
