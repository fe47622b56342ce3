// Element types, their storage and their names.
#pragma once

#include <cstddef>
#include <cstdint>
#include <iosfwd>
#include <string_view>

#include "core/half.h"
#include "core/support/error.h"

namespace tessera {

enum class DType : std::uint8_t { f32, bf16, f16, f64, i32, i64, u8 };

constexpr std::size_t size_of(DType dtype) noexcept {
  switch (dtype) {
    case DType::f64:
    case DType::i64: return 8;
    case DType::f32:
    case DType::i32: return 4;
    case DType::bf16:
    case DType::f16: return 2;
    case DType::u8: return 1;
  }
  return 0;
}

constexpr bool is_floating(DType dtype) noexcept {
  return dtype == DType::f32 || dtype == DType::f64 || dtype == DType::bf16 || dtype == DType::f16;
}
constexpr bool is_half(DType dtype) noexcept { return dtype == DType::bf16 || dtype == DType::f16; }

// "f32", "bf16", ...: the spelling of experiment files, logs and error messages.
std::string_view name_of(DType dtype) noexcept;
std::ostream& operator<<(std::ostream& out, DType dtype);

// The DType that stores a C++ element type.
template <class T>
struct DTypeOf;
template <> struct DTypeOf<float> { static constexpr DType value = DType::f32; };
template <> struct DTypeOf<bfloat16> { static constexpr DType value = DType::bf16; };
template <> struct DTypeOf<float16> { static constexpr DType value = DType::f16; };
template <> struct DTypeOf<double> { static constexpr DType value = DType::f64; };
template <> struct DTypeOf<std::int32_t> { static constexpr DType value = DType::i32; };
template <> struct DTypeOf<std::int64_t> { static constexpr DType value = DType::i64; };
template <> struct DTypeOf<std::uint8_t> { static constexpr DType value = DType::u8; };
template <class T>
inline constexpr DType dtype_of = DTypeOf<T>::value;

// Calls f.operator()<T>() with the element type of a computing dtype (f32 or f64). Throws DTypeError, naming the
// operation, on every other dtype: half types are storage only until a kernel says otherwise.
template <class F>
decltype(auto) dispatch_real(DType dtype, const char* operation, F&& f) {
  switch (dtype) {
    case DType::f32: return f.template operator()<float>();
    case DType::f64: return f.template operator()<double>();
    default: throw DTypeError(str(operation, ": dtype is ", name_of(dtype), "; needs f32 or f64"));
  }
}

// Calls f.operator()<T>() with the element type of any dtype.
template <class F>
decltype(auto) dispatch_all(DType dtype, F&& f) {
  switch (dtype) {
    case DType::f32: return f.template operator()<float>();
    case DType::bf16: return f.template operator()<bfloat16>();
    case DType::f16: return f.template operator()<float16>();
    case DType::f64: return f.template operator()<double>();
    case DType::i32: return f.template operator()<std::int32_t>();
    case DType::i64: return f.template operator()<std::int64_t>();
    case DType::u8: return f.template operator()<std::uint8_t>();
  }
  throw InternalError("dispatch_all: unknown dtype");
}

}  // namespace tessera
