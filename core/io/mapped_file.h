// A whole file as bytes in memory, which the system reads where they are looked at and may drop again. For files that nobody
// shortens in place: what is cut off under a mapping ends the process.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "core/io/system_calls.h"

namespace tessera {

class MappedFile {
 public:
  // Throws IoError naming path and reason. `calls` must outlive it.
  explicit MappedFile(const std::string& path, SystemCalls& calls = operating_system());
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  std::string_view bytes() const noexcept { return {static_cast<const char*>(data_), size_}; }

 private:
  SystemCalls& calls_;
  void* data_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace tessera
