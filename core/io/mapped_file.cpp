#include "core/io/mapped_file.h"

#include <cstring>

#include "core/io/file_descriptor.h"
#include "core/support/error.h"

namespace tessera {

MappedFile::MappedFile(const std::string& path, SystemCalls& calls) : calls_(calls) {
  const FileDescriptor file(calls, path.c_str(), O_RDONLY);
  struct stat status {};
  const bool known = file.get() >= 0 && calls.fstat(file.get(), status) == 0;
  size_ = known ? static_cast<std::size_t>(status.st_size) : 0;
  if (size_ > 0) data_ = calls.mmap(size_, file.get());
  TESSERA_CHECK(known && data_ != MAP_FAILED, IoError, path, ": cannot be mapped: ", std::strerror(errno));
}

MappedFile::~MappedFile() {
  if (data_ != nullptr) calls_.munmap(data_, size_);
}

}  // namespace tessera
