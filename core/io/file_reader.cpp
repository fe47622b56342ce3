#include "core/io/file_reader.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "core/support/error.h"

namespace tessera {

FileReader::FileReader(const std::string& path) : path_(path), file_(::open(path.c_str(), O_RDONLY | O_CLOEXEC)) {
  TESSERA_CHECK(file_ >= 0, IoError, path, ": cannot be opened: ", std::strerror(errno));
}

FileReader::~FileReader() { ::close(file_); }

std::size_t FileReader::read(char* bytes, std::size_t size) {
  std::size_t filled = 0;
  while (filled < size) {
    const ssize_t count = ::read(file_, bytes + filled, size - filled);
    if (count == 0) break;
    if (count < 0 && errno == EINTR) continue;
    TESSERA_CHECK(count > 0, IoError, path_, ": cannot be read: ", std::strerror(errno));
    filled += static_cast<std::size_t>(count);
  }
  return filled;
}

}  // namespace tessera
