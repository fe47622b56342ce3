// One description of a block's keys that serves every purpose: strict reading, writing back, `tessera schema`, generated
// tests, the JSON of reports. A block is a struct with its defaults in the members and one function:
//
//   struct SgdConfig {
//     double lr = 0.1;
//     void fields(Fields& f) { f.add("lr", lr, {.help = "learning rate", .range = positive}); }
//   };
//
// Blocks that exist in several forms are a std::variant whose alternatives have names (core/config/forms.h).
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "core/config/duration.h"
#include "core/config/field_spec.h"
#include "core/config/forms.h"
#include "core/config/value.h"

namespace tessera {

class Fields;
template <class T>
concept Block = requires(T& block, Fields& fields) { block.fields(fields); };
namespace detail {
std::vector<std::string> keys_of(void* block, void (*visit)(void* block, Fields& fields));  // of the block itself, in their order
}

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
  // Kept as it stands; its reader comes later. FieldSpec::check judges it already here.
  virtual void add(std::string_view key, Value& value, const FieldSpec& spec) = 0;

  // A nested block.
  template <Block T>
  void add(std::string_view key, T& block, const FieldSpec& spec);

  // Absent keys leave an optional empty; an empty optional is not written, or as null where FieldSpec::nullable says so.
  template <class T>
  void add(std::string_view key, std::optional<T>& value, const FieldSpec& spec);

  // A list of blocks.
  template <Block T>
  void add(std::string_view key, std::vector<T>& list, const FieldSpec& spec);

  // A block, or a list of other blocks in its place: `ranks: {macs: 0.4}` or `ranks: [{layers: "layer1.*", macs: 0.4}, ...]`.
  // The list is written if it has items, the block otherwise.
  template <Block One, Block Item>
  void add_one_or_list(std::string_view key, One& block, std::vector<Item>& list, const FieldSpec& spec);

  // A value that follows from the members, or is shown in another form than they keep. It is written and described; a reader
  // checks what it finds there and drops it.
  template <class T>
  void add_computed(std::string_view key, T value, const FieldSpec& spec) {
    add(key, value, spec);
  }

  // Selects an alternative by the text under `key` ("name") in the current block, then describes its keys beside it. What
  // `shared` adds stands between the two: keys that every alternative has.
  template <class... Ts, class Shared>
  void choose(std::string_view key, std::variant<Ts...>& value, const FieldSpec& spec, const Shared& shared);
  template <class... Ts>
  void choose(std::string_view key, std::variant<Ts...>& value, const FieldSpec& spec) {
    choose(key, value, spec, [](Fields&) {});
  }

  // A rule that spans keys: reported at the key, or at the block where the file has no such key. `holds` is evaluated by the
  // caller after its fields. The key may lie deeper: "stages[1].factorise.from".
  virtual void require(bool holds, std::string_view key, std::string_view rule) = 0;

 protected:
  enum class Purpose { read, write, describe };
  // What a choice is between.
  struct Form {
    std::vector<std::string_view> names;
    std::vector<std::string> (*keys)();
  };
  virtual Purpose purpose() const = 0;

  // Block at a key. False: it cannot be visited, and the defaults stand.
  virtual bool enter(std::string_view key, const FieldSpec& spec) = 0;
  // Items to visit; empty: the key is absent or no list, and the defaults stand.
  virtual std::optional<std::size_t> enter_list(std::string_view key, std::size_t size, const FieldSpec& spec) = 0;
  virtual bool enter_item(std::size_t index) = 0;
  virtual void enter_alternative(std::string_view name) = 0;
  // Ends whatever was entered last.
  virtual void leave() = 0;

  virtual bool present(std::string_view key, bool has_value) = 0;
  // Whether null stands in place of this nullable optional.
  virtual bool is_null(std::string_view key, bool has_value) = 0;
  // Whether the value at a key is a list; has_items: whether the member that stands for one holds any.
  virtual bool is_list(std::string_view key, bool has_items) = 0;
  // The text that selects an alternative of `forms`. False: it names none, so the keys beside it cannot be judged.
  virtual bool add_name(std::string_view key, std::string& name, const FieldSpec& spec, std::span<const Form> forms) = 0;

 private:
  template <class T>
  static std::vector<std::string> keys_of_form();
  template <class T>
  void describe_alternative();
  template <class T>
  void describe_absent(std::string_view key, const FieldSpec& spec);
};

// What every visitor does in the same way.

template <Block T>
void Fields::add(std::string_view key, T& block, const FieldSpec& spec) {
  if (!enter(key, spec)) return;
  block.fields(*this);
  leave();
}

template <class T>
void Fields::add(std::string_view key, std::optional<T>& value, const FieldSpec& spec) {
  if (spec.nullable && is_null(key, value.has_value())) return value.reset();
  if (!present(key, value.has_value())) return describe_absent<T>(key, spec);
  if (!value) value.emplace();
  add(key, *value, spec);
}

template <Block T>
void Fields::add(std::string_view key, std::vector<T>& list, const FieldSpec& spec) {
  const std::optional<std::size_t> size = enter_list(key, list.size(), spec);
  if (!size) return;
  if (purpose() != Purpose::write) list.clear();  // items that a file lists never merge with default items
  list.resize(*size);
  for (std::size_t i = 0; i < *size; ++i) {
    if (!enter_item(i)) continue;
    list[i].fields(*this);
    leave();
  }
  leave();
}

template <Block One, Block Item>
void Fields::add_one_or_list(std::string_view key, One& block, std::vector<Item>& list, const FieldSpec& spec) {
  const bool listed = is_list(key, !list.empty());
  if (!listed || purpose() == Purpose::describe) add(key, block, spec);
  if (listed || purpose() == Purpose::describe) add(key, list, spec);
  if (!listed && purpose() == Purpose::read) list.clear();
}

template <class... Ts, class Shared>
void Fields::choose(std::string_view key, std::variant<Ts...>& value, const FieldSpec& spec, const Shared& shared) {
  const std::array<Form, sizeof...(Ts)> forms{Form{form_names<Ts>(), &keys_of_form<Ts>}...};
  std::string name(form_name(value));
  FieldSpec named = spec;
  named.choices = all_form_names(value);
  const bool known = add_name(key, name, named, forms);
  shared(*this);
  if (purpose() == Purpose::describe) return (describe_alternative<Ts>(), ...);
  if (!known) return;
  if (name != form_name(value)) set_form(value, name);
  std::visit([this](auto& chosen) { chosen.fields(*this); }, value);
}

template <class T>
std::vector<std::string> Fields::keys_of_form() {
  T form{};
  return detail::keys_of(&form, [](void* block, Fields& fields) { static_cast<T*>(block)->fields(fields); });
}

template <class T>
void Fields::describe_alternative() {
  T alternative{};
  enter_alternative(form_names<T>().front());
  alternative.fields(*this);
  leave();
}

template <class T>
void Fields::describe_absent(std::string_view key, const FieldSpec& spec) {
  if (purpose() != Purpose::describe) return;
  T absent{};
  add(key, absent, spec);
}

}  // namespace tessera
