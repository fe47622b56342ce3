// What stands for a path that a user names.
#pragma once

#include <string>

namespace tessera {

struct FoundFile {
  std::string path;
  std::string fault = {};  // why it cannot be read: a folder that cannot be listed, a link to nothing; "" for a file

  friend bool operator==(const FoundFile&, const FoundFile&) = default;
};

}  // namespace tessera
