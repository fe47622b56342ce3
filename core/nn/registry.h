// name -> builder, filled by one visible function per kind of product and passed by reference. No static registration:
// linkers drop it from static libraries, and nobody can grep for it.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/config/read.h"
#include "core/config/suggest.h"
#include "core/support/error.h"

namespace tessera {

template <class Product>
class Registry {
 public:
  explicit Registry(std::string what) : what_(std::move(what)) {}

  // T is a Product with a nested `Config` block that it is constructed from.
  template <class T>
  void add(const std::string& name) {
    Entry entry;
    entry.check = [](const Value& config, std::string_view path, std::vector<ConfigProblem>& problems) {
      typename T::Config unused;
      read(config, unused, path, problems);
    };
    entry.build = [](const Value& config) { return std::make_unique<T>(read<typename T::Config>(config)); };
    entry.schema = [] { return schema<typename T::Config>(); };
    if (!entries_.emplace(name, std::move(entry)).second) throw InternalError(str(what_, " '", name, "' is registered twice"));
  }

  bool contains(std::string_view name) const { return entries_.find(name) != entries_.end(); }

  std::vector<std::string_view> names() const {
    std::vector<std::string_view> all;
    for (const auto& [name, entry] : entries_) all.push_back(name);
    return all;
  }

  // Why `name`, which the registry does not contain, is wrong: "unknown layer 'covn2d'; did you mean 'conv2d'?; known: ...".
  std::string unknown(std::string_view name) const {
    const std::vector<std::string_view> known = names();
    std::string message = str("unknown ", what_, " '", name, "'");
    if (const auto near = nearest_names(name, known, 1); !near.empty()) message += str("; did you mean '", near[0], "'?");
    message += "; known:";
    for (const std::string_view other : known) message += str(' ', other);
    return message;
  }

  // Throws ConfigError: unknown(name), and on every fault of the config.
  std::unique_ptr<Product> build(std::string_view name, const Value& config) const { return find(name).build(config); }
  void check(std::string_view name, const Value& config, std::string_view path, std::vector<ConfigProblem>& problems) const {
    find(name).check(config, path, problems);
  }
  std::vector<SchemaEntry> schema_of(std::string_view name) const { return find(name).schema(); }

 private:
  struct Entry {
    std::function<void(const Value&, std::string_view, std::vector<ConfigProblem>&)> check;
    std::function<std::unique_ptr<Product>(const Value&)> build;
    std::function<std::vector<SchemaEntry>()> schema;
  };

  const Entry& find(std::string_view name) const {
    const auto found = entries_.find(name);
    if (found != entries_.end()) return found->second;
    throw ConfigError(unknown(name));
  }

  std::string what_;
  std::map<std::string, Entry, std::less<>> entries_;
};

}  // namespace tessera
