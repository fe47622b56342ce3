#include "train/run/json_lines.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <utility>

#include "core/support/error.h"

namespace tessera {

JsonLines::JsonLines(std::string path, std::int64_t length) : path_(std::move(path)), length_(length) {
  std::error_code error;
  if (std::filesystem::exists(path_, error)) {
    const auto size = static_cast<std::int64_t>(std::filesystem::file_size(path_, error));
    TESSERA_CHECK(!error && size >= length, IoError, path_, ": holds ", size, " bytes, the checkpoint expects at least ", length);
    std::filesystem::resize_file(path_, static_cast<std::uintmax_t>(length), error);
    TESSERA_CHECK(!error, IoError, "cannot cut ", path_, " to ", length, " bytes: ", error.message());
  } else {
    TESSERA_CHECK(length == 0, IoError, path_, " is missing; the checkpoint expects ", length, " bytes of it");
  }
  out_.open(path_, std::ios::binary | std::ios::app);
  TESSERA_CHECK(out_.is_open(), IoError, "cannot open ", path_, " for writing");
}

void JsonLines::append(const Value& row) {
  const std::string line = to_json(row) + "\n";
  out_ << line << std::flush;
  TESSERA_CHECK(out_.good(), IoError, "cannot write to ", path_);
  length_ += static_cast<std::int64_t>(line.size());
}

void JsonLines::sync() {
  const int file = open(path_.c_str(), O_WRONLY | O_CLOEXEC);
  TESSERA_CHECK(file >= 0, IoError, "cannot open ", path_, " to make it durable: ", std::strerror(errno));
  const bool durable = fsync(file) == 0;
  const int reason = errno;
  close(file);
  TESSERA_CHECK(durable, IoError, "cannot make ", path_, " durable: ", std::strerror(reason));
}

void for_each_json_line(Vfs& vfs, const std::string& path, const std::function<void(const JsonLine&)>& take) {
  const std::string text = vfs.read_file(path);
  std::size_t number = 1;
  for (std::size_t begin = 0, end; (end = text.find('\n', begin)) != std::string::npos; begin = end + 1, ++number) {
    std::string where = str(path, ':', number);
    Value value = parse_json(std::string_view(text).substr(begin, end - begin), where);
    TESSERA_CHECK(value.is_map(), IoError, where, ": is ", value.kind_name(), "; a line is a JSON object");
    take({std::move(value), std::move(where)});
  }
}

std::vector<JsonLine> read_json_lines(Vfs& vfs, const std::string& path) {
  std::vector<JsonLine> lines;
  for_each_json_line(vfs, path, [&](const JsonLine& line) { lines.push_back(line); });
  return lines;
}

}  // namespace tessera
