#include "core/io/file_reader.h"

#include <cstring>

#include "core/support/error.h"

namespace tessera {

FileReader::FileReader(const std::string& path, SystemCalls& calls)
    : calls_(calls), path_(path), file_(calls, path.c_str(), O_RDONLY) {
  TESSERA_CHECK(file_.get() >= 0, IoError, path, ": cannot be opened: ", std::strerror(errno));
}

std::size_t FileReader::read(char* bytes, std::size_t size) {
  std::size_t filled = 0;
  while (filled < size) {
    const ssize_t count = retry_on_interrupt([&] { return calls_.read(file_.get(), bytes + filled, size - filled); });
    TESSERA_CHECK(count >= 0, IoError, path_, ": cannot be read: ", std::strerror(errno));
    if (count == 0) break;
    filled += static_cast<std::size_t>(count);
  }
  return filled;
}

}  // namespace tessera
