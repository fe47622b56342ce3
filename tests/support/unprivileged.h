// For tests of what a user may not do.
#pragma once

#include <unistd.h>

namespace tessera::testing {

// Root may read and write everything: as somebody else while it lives.
class Unprivileged {
 public:
  Unprivileged() : root_(::geteuid() == 0), given_up_(!root_ || ::seteuid(65534) == 0) {}
  Unprivileged(const Unprivileged&) = delete;
  Unprivileged& operator=(const Unprivileged&) = delete;
  ~Unprivileged() {
    if (root_ && given_up_) static_cast<void>(::seteuid(0));
  }
  bool given_up() const noexcept { return given_up_; }

 private:
  bool root_;
  bool given_up_;
};

}  // namespace tessera::testing
