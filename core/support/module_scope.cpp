#include "core/support/module_scope.h"

#include <mutex>
#include <set>
#include <utility>

#include "core/support/error.h"

namespace tessera {
namespace {

thread_local ModulePath scope = nullptr;

}  // namespace

ModulePath keep_path(std::string_view path) {
  static std::mutex& mutex = *new std::mutex;  // both are never destroyed, because static objects may hold modules
  static auto& paths = *new std::set<std::string, std::less<>>;
  const std::lock_guard lock(mutex);
  const auto found = paths.find(path);
  return found != paths.end() ? &*found : &*paths.emplace(path).first;
}

ModuleScope::ModuleScope(ModulePath path) noexcept : previous_(std::exchange(scope, path)) {}
ModuleScope::~ModuleScope() { scope = previous_; }
ModulePath ModuleScope::current() noexcept { return scope; }

std::string place(std::string_view op, ModulePath path) {
  return path == nullptr || path->empty() ? std::string(op) : str(op, " (", *path, ")");
}

}  // namespace tessera
