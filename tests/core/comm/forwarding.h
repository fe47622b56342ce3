// The ranks of a test program behind another object, for tests that change a part of what it does.
#pragma once

#include <cstdlib>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tests/core/comm/ranks.h"

namespace tessera {

class Forwarding : public Communicator {
 public:
  int rank() const noexcept override { return ranks().rank(); }
  int size() const noexcept override { return ranks().size(); }
  void all_reduce(const Tensor& values, std::string_view name) override { ranks().all_reduce(values, name); }
  void broadcast(std::string& bytes) override { ranks().broadcast(bytes); }
  std::vector<std::string> all_gather(std::string_view bytes) override { return ranks().all_gather(bytes); }
  std::uint64_t any(std::uint64_t flags) override { return ranks().any(flags); }
  void barrier() override { ranks().barrier(); }
  void watch(std::function<void(int rank)> silent) override { ranks().watch(std::move(silent)); }
  Communicator* beside() override { return ranks().beside(); }
  [[noreturn]] void fail(int exit_code, std::string_view why) override {
    ranks().fail(exit_code, why);
    std::abort();
  }
  [[noreturn]] void end_all(int exit_code) override {
    ranks().end_all(exit_code);
    std::abort();
  }
};

}  // namespace tessera
