// What every visitor of Fields does in the same way; the end of fields.h, included by it alone.
#pragma once

#include "core/config/fields.h"

namespace tessera {

template <Block T>
void Fields::add(std::string_view key, T& block, const FieldSpec& spec) {
  if (!enter(key, spec)) return;
  block.fields(*this);
  leave();
}

template <class T>
void Fields::add(std::string_view key, std::optional<T>& value, const FieldSpec& spec) {
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

template <class... Ts>
void Fields::choose(std::string_view key, std::variant<Ts...>& value, const FieldSpec& spec) {
  const std::vector<std::string_view> names{Ts::kName...};
  std::string name(names[value.index()]);
  FieldSpec named = spec;
  named.choices = names;
  const bool known = add_name(key, name, named);
  if (purpose() == Purpose::describe) return (describe_alternative<Ts>(), ...);
  if (!known) return;
  ((name == Ts::kName && !std::holds_alternative<Ts>(value) ? void(value.template emplace<Ts>()) : void()), ...);
  std::visit([this](auto& chosen) { chosen.fields(*this); }, value);
}

template <class T>
void Fields::describe_alternative() {
  T alternative{};
  enter_alternative(T::kName);
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
