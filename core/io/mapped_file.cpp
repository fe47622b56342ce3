#include "core/io/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "core/support/error.h"

namespace tessera {

MappedFile::MappedFile(const std::string& path) {
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  struct stat status {};
  const bool known = file >= 0 && ::fstat(file, &status) == 0;
  size_ = known ? static_cast<std::size_t>(status.st_size) : 0;
  if (known && size_ > 0) data_ = ::mmap(nullptr, size_, PROT_READ, MAP_PRIVATE, file, 0);
  const int error = errno;
  if (file >= 0) ::close(file);
  TESSERA_CHECK(known && data_ != MAP_FAILED, IoError, path, ": cannot be mapped: ", std::strerror(error));
}

MappedFile::~MappedFile() {
  if (data_ != nullptr) ::munmap(data_, size_);
}

}  // namespace tessera
