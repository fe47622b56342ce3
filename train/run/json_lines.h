// Append-only files of one JSON object per line. The length is part of a checkpoint: resume cuts the file back to it, so that
// a replayed step is not written twice.
#pragma once

#include <cstdint>
#include <fstream>
#include <functional>
#include <string>
#include <vector>

#include "core/config/value.h"
#include "core/io/vfs.h"

namespace tessera {

class JsonLines {
 public:
  // Opens for appending after cutting the file to `length` bytes; 0 starts it anew. Throws IoError when the file is shorter.
  JsonLines(std::string path, std::int64_t length);
  void append(const Value& row);  // written and flushed at once; throws IoError
  void sync();  // to stable storage; throws IoError
  std::int64_t length() const noexcept { return length_; }

 private:
  std::string path_;
  std::ofstream out_;
  std::int64_t length_;
};

struct JsonLine {
  Value value;
  std::string where;  // "runs/small/1/metrics.jsonl:12"
};

// The lines of such a file, one after another. A last one without its line end is still being written, and is left out. Throws
// IoError naming file and line on one that is no JSON object.
void for_each_json_line(Vfs& vfs, const std::string& path, const std::function<void(const JsonLine&)>& take);
std::vector<JsonLine> read_json_lines(Vfs& vfs, const std::string& path);  // all at once

}  // namespace tessera
