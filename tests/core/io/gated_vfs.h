// The real files, which wait at every new file until the test lets them go on. The test's own thread never waits, so that a save
// that should be beside it fails the test instead of stopping it for good.
#pragma once

#include <latch>
#include <memory>
#include <thread>

#include "tests/core/io/forwarding_vfs.h"

namespace tessera {

class GatedVfs final : public ForwardingVfs {
 public:
  GatedVfs() : ForwardingVfs(real_vfs()) {}
  std::unique_ptr<WritableFile> create(const Path& path) override {
    if (gate != nullptr && std::this_thread::get_id() != test_) gate->wait();
    return below_.create(path);
  }
  std::latch* gate = nullptr;

 private:
  std::thread::id test_ = std::this_thread::get_id();
};

}  // namespace tessera
