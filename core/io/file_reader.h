// A file read from its beginning to its end, in parts.
#pragma once

#include <cstddef>
#include <string>

namespace tessera {

class FileReader {
 public:
  explicit FileReader(const std::string& path);  // throws IoError naming path and reason
  ~FileReader();
  FileReader(const FileReader&) = delete;
  FileReader& operator=(const FileReader&) = delete;

  // Fills `bytes`; fewer than `size` are the last ones. Throws IoError, also on a folder.
  std::size_t read(char* bytes, std::size_t size);

 private:
  std::string path_;
  int file_;
};

}  // namespace tessera
