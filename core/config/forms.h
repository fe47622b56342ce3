// Names of the alternatives of a std::variant, by which Fields::choose selects one: `static constexpr const char* kName`, or,
// where an alternative has several, `static constexpr std::array<std::string_view, N> kNames` and a member `std::string name`
// that keeps the one it goes by.
#pragma once

#include <string>
#include <string_view>
#include <type_traits>
#include <variant>
#include <vector>

namespace tessera {

template <class T>
concept HasNames = requires(T& form) {
  T::kNames;
  form.name = std::string();
};

// All names of one alternative.
template <class T>
std::vector<std::string_view> form_names() {
  if constexpr (HasNames<T>) {
    return {T::kNames.begin(), T::kNames.end()};
  } else {
    return {T::kName};
  }
}

// The name that the value goes by.
template <class... Ts>
std::string_view form_name(const std::variant<Ts...>& value) {
  const auto name_of = []<class T>(const T& form) -> std::string_view {
    if constexpr (HasNames<T>) {
      return form.name;
    } else {
      return T::kName;
    }
  };
  return std::visit(name_of, value);
}

// The names of all alternatives, in their order.
template <class... Ts>
std::vector<std::string_view> all_form_names(const std::variant<Ts...>&) {
  std::vector<std::string_view> all;
  for (const std::vector<std::string_view>& names : {form_names<Ts>()...}) all.insert(all.end(), names.begin(), names.end());
  return all;
}

// Makes `value` the alternative of a name; returns whether there is one. Where `value` is that alternative already, under
// another name, its keys stay.
template <class... Ts>
bool set_form(std::variant<Ts...>& value, std::string_view name) {
  const auto set = [&]<class T>(std::type_identity<T>) {
    for (const std::string_view each : form_names<T>()) {
      if (each != name) continue;
      if (!std::holds_alternative<T>(value)) value.template emplace<T>();
      if constexpr (HasNames<T>) std::get<T>(value).name = name;
      return true;
    }
    return false;
  };
  return (set(std::type_identity<Ts>{}) || ...);
}

}  // namespace tessera
