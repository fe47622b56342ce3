// One description of a block's keys that serves every purpose: strict reading, writing back, `tessera schema`, generated
// tests. A block is a struct with its defaults in the members and one function:
//
//   struct SgdConfig {
//     double lr = 0.1;
//     void fields(Fields& f) { f.add("lr", lr, {.help = "learning rate", .range = positive}); }
//   };
//
// Blocks that exist in several forms are a std::variant whose alternatives carry `static constexpr const char* kName`.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "core/config/duration.h"
#include "core/config/value.h"

namespace tessera {

struct Range {
  double min = -std::numeric_limits<double>::infinity();
  double max = std::numeric_limits<double>::infinity();
  bool open_min = false;  // min itself is not legal
  bool open_max = false;
};
inline constexpr Range positive{.min = 0, .open_min = true};
inline constexpr Range non_negative{.min = 0};
inline constexpr Range unit_interval{.min = 0, .max = 1};
constexpr Range at_least(double min) { return {.min = min}; }
constexpr Range between(double min, double max) { return {.min = min, .max = max}; }

struct FieldSpec {
  std::string_view help = {};
  Range range = {};                            // numbers, and each element of a list of numbers
  std::vector<std::string_view> choices = {};  // legal texts; empty = any
  std::string_view example = {};
  // Where setting the key shows: "plan", "bytes", "report", "files", "log", or "none: reason".
  std::string_view observable = "bytes";
  bool required = false;
};

// Height and width. Written as one number or as [h, w].
struct Extent {
  std::int64_t h = 1;
  std::int64_t w = 1;
  friend bool operator==(const Extent&, const Extent&) = default;
};

class Fields;
template <class T>
concept Block = requires(T& block, Fields& fields) { block.fields(fields); };

class Fields {
 public:
  virtual ~Fields() = default;

  virtual void add(std::string_view key, bool& value, const FieldSpec& spec) = 0;
  virtual void add(std::string_view key, std::int64_t& value, const FieldSpec& spec) = 0;
  virtual void add(std::string_view key, double& value, const FieldSpec& spec) = 0;
  virtual void add(std::string_view key, std::string& value, const FieldSpec& spec) = 0;
  virtual void add(std::string_view key, Duration& value, const FieldSpec& spec) = 0;
  virtual void add(std::string_view key, Extent& value, const FieldSpec& spec) = 0;
  virtual void add(std::string_view key, std::vector<std::int64_t>& value, const FieldSpec& spec) = 0;
  virtual void add(std::string_view key, std::vector<double>& value, const FieldSpec& spec) = 0;
  virtual void add(std::string_view key, std::vector<std::string>& value, const FieldSpec& spec) = 0;
  // Kept as it stands; its reader comes later (a module's config, checked by the module registry).
  virtual void add(std::string_view key, Value& value, const FieldSpec& spec) = 0;

  // A nested block.
  template <Block T>
  void add(std::string_view key, T& block, const FieldSpec& spec) {
    if (!enter(key, spec)) return;
    block.fields(*this);
    leave();
  }

  // Absent keys leave an optional empty; an empty optional is not written.
  template <class T>
  void add(std::string_view key, std::optional<T>& value, const FieldSpec& spec) {
    if (!present(key, value.has_value())) return describe_absent<T>(key, spec);
    if (!value) value.emplace();
    add(key, *value, spec);
  }

  // A list of blocks.
  template <class T>
    requires Block<T>
  void add(std::string_view key, std::vector<T>& list, const FieldSpec& spec) {
    const std::optional<std::size_t> size = enter_list(key, list.size(), spec);
    if (!size) return;
    list.resize(*size);
    for (std::size_t i = 0; i < *size; ++i) {
      if (!enter_item(i)) continue;
      list[i].fields(*this);
      leave();
    }
    leave();
  }

  // Selects an alternative by the text under `key` ("name") in the current block, then describes its keys beside it.
  template <class... Ts>
  void choose(std::string_view key, std::variant<Ts...>& value, const FieldSpec& spec) {
    const std::vector<std::string_view> names{Ts::kName...};
    std::string name(names[value.index()]);
    FieldSpec named = spec;
    named.choices = names;
    add(key, name, named);
    if (describing()) {
      (describe_alternative<Ts>(key), ...);
      return;
    }
    ((name == Ts::kName && !std::holds_alternative<Ts>(value) ? void(value.template emplace<Ts>()) : void()), ...);
    std::visit([this](auto& chosen) { chosen.fields(*this); }, value);
  }

  // A rule that spans keys: reported at the block with its path. `holds` is evaluated by the caller after its fields.
  virtual void require(bool holds, std::string_view key, std::string_view rule) = 0;

 protected:
  // Block at a key. False: the key is absent, and the defaults stand.
  virtual bool enter(std::string_view key, const FieldSpec& spec) = 0;
  virtual std::optional<std::size_t> enter_list(std::string_view key, std::size_t size, const FieldSpec& spec) = 0;
  virtual bool enter_item(std::size_t index) = 0;
  virtual void leave() = 0;
  virtual bool present(std::string_view key, bool has_value) = 0;
  // Schema listing: visits every alternative and every optional.
  virtual bool describing() const = 0;
  virtual void enter_alternative(std::string_view key, std::string_view name) = 0;

 private:
  template <class T>
  void describe_alternative(std::string_view key) {
    T alternative{};
    enter_alternative(key, T::kName);
    alternative.fields(*this);
    leave();
  }
  template <class T>
  void describe_absent(std::string_view key, const FieldSpec& spec) {
    if (!describing()) return;
    T absent{};
    add(key, absent, spec);
  }
};

}  // namespace tessera
