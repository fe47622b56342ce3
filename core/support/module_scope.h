// Which module's forward runs on this thread, for messages about its ops, in backward too.
#pragma once

#include <string>
#include <string_view>

namespace tessera {

// The path of a module, kept once and for the life of the process, so that a recorded op may outlive its module.
using ModulePath = const std::string*;
ModulePath keep_path(std::string_view path);

class ModuleScope {
 public:
  explicit ModuleScope(ModulePath path) noexcept;
  ~ModuleScope();
  ModuleScope(const ModuleScope&) = delete;
  ModuleScope& operator=(const ModuleScope&) = delete;

  static ModulePath current() noexcept;  // null outside every scope

 private:
  ModulePath previous_;
};

// "conv2d (layer1.0.conv1)"; the path is left out where there is none.
std::string place(std::string_view op, ModulePath path);

}  // namespace tessera
