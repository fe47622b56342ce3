// XXH3-128 (Yann Collet's xxHash 0.8): finds damage, is no defence against an attacker. As lower-case hex in xxHash's canonical
// order, the text that `xxhsum -H2 FILE` prints.
#pragma once

#include <memory>
#include <string>
#include <string_view>

namespace tessera {

std::string xxh3_128(std::string_view bytes);

// The same over pieces.
class Xxh3Stream {
 public:
  Xxh3Stream();
  ~Xxh3Stream();
  void update(std::string_view bytes);
  std::string hex() const;  // of everything so far

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace tessera
