// The real files, where no file of one step's checkpoint can be made. Without state, so that any thread may meet it.
#pragma once

#include <memory>
#include <string>

#include "core/support/error.h"
#include "tests/core/io/forwarding_vfs.h"

namespace tessera {

class FailingSave final : public ForwardingVfs {
 public:
  explicit FailingSave(std::int64_t step) : ForwardingVfs(real_vfs()), folder_(str(".tmp-", step, '-')) {}
  std::unique_ptr<WritableFile> create(const Path& path) override {
    if (!path.parent_path().filename().string().starts_with(folder_)) return below_.create(path);
    throw IoError(str("vfs: create failed: path is ", path.string(), ": No space left on device"));
  }

 private:
  const std::string folder_;
};

}  // namespace tessera
