// Whether this process gets the cores that it asks for: a clock that is read while other programs have them tells nothing of the
// work that it times.
#pragma once

#include <memory>
#include <vector>

#include "core/io/file_descriptor.h"

namespace tessera::cpu {

// How long threads of this process could have run and had no core: another program had it, there are more threads than cores, or
// a limit of the process's group held them. Only threads that there are when the object is made count. 0 where the system does
// not tell (/proc/self/task/*/schedstat); what a hypervisor takes is not counted. Where a HostClock lives
// (core/device/device_work.h) its wait is that of one thread.
class CoreWait {
 public:
  CoreWait();
  void begin();
  double seconds() const;  // since begin(), of the thread that waited longest

 private:
  std::vector<double> waits() const;

  std::vector<std::unique_ptr<FileDescriptor>> threads_;
  std::vector<double> before_;
};

}  // namespace tessera::cpu
