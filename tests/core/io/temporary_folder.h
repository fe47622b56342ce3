// A fresh folder per test, removed with everything in it. In memory where the system has such a place: the tests fsync thousands
// of small files, and none of them can see whether a disk is below.
#pragma once

#include <unistd.h>

#include "core/io/scratch_folder.h"

namespace tessera {

class TemporaryFolder : public ScratchFolder {
 public:
  TemporaryFolder() : ScratchFolder("tessera-test", ::access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "") {}
};

}  // namespace tessera
