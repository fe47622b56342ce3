// A file read from its beginning to its end, in parts.
#pragma once

#include <cstddef>
#include <string>

#include "core/io/file_descriptor.h"

namespace tessera {

class FileReader {
 public:
  // Throws IoError naming path and reason. `calls` must outlive it.
  explicit FileReader(const std::string& path, SystemCalls& calls = operating_system());

  // Fills `bytes`; fewer than `size` are the last ones. Throws IoError, also on a folder.
  std::size_t read(char* bytes, std::size_t size);

 private:
  SystemCalls& calls_;
  std::string path_;
  FileDescriptor file_;
};

}  // namespace tessera
