#include "capi/arguments.h"

#include <algorithm>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "core/support/counting.h"
#include "core/support/error.h"

namespace tessera::capi {
namespace {

DType dtype_in_cpp(const tessera_tensor& given, const std::string& what) {
  switch (given.dtype) {
    case TESSERA_FLOAT32: return DType::f32;
    case TESSERA_INT64: return DType::i64;
    case TESSERA_UINT8: return DType::u8;
    default: break;
  }
  throw DTypeError(str(what, " has the dtype ", given.dtype, "; needs TESSERA_FLOAT32, TESSERA_INT64 or TESSERA_UINT8"));
}

Shape shape_in_cpp(const tessera_tensor& given, const std::string& what) {
  TESSERA_CHECK(given.rank >= 1 && given.rank <= TESSERA_MOST_AXES, ShapeError, what, " has the rank ", given.rank,
                "; must be 1 to ", int{TESSERA_MOST_AXES});
  TESSERA_CHECK(given.shape != nullptr, ShapeError, what, ": its shape is null");
  const std::span sizes(given.shape, static_cast<std::size_t>(given.rank));
  const auto bad = std::ranges::find_if(sizes, [](std::int64_t size) { return size < 1; });
  TESSERA_CHECK(bad == sizes.end(), ShapeError, what, ": size ", bad - sizes.begin(), " of its shape is ",
                bad == sizes.end() ? 0 : *bad, "; must be 1 or more");
  TESSERA_CHECK(can_be_counted(sizes), ShapeError, what, ": its shape has more than 2^40 elements");
  return Shape(sizes);
}

std::string names_of(const std::vector<Input>& inputs) {
  std::string names;
  for (const Input& input : inputs) names += (names.empty() ? "" : ", ") + input.field.name;
  return names;
}

// "input 'image' is float32 [3, 28, 28]"
std::string told(const Input& input, DType dtype, const Shape& shape) {
  return str("input '", input.field.name, "' is ", name_in_c(dtype), ' ', shape);
}

// "float32 or uint8 [batch, 28, 28, 1]"
std::string wanted(const Input& input) {
  std::string text = str(name_in_c(input.field.dtype), input.pixels ? " or uint8" : "", " [batch");
  for (const std::int64_t size : input.field.shape) text += input.any_length ? ", positions" : str(", ", size);
  return text + "]";
}

bool fits(const Input& input, const Shape& shape) {
  const Shape& sample = input.field.shape;
  return shape.rank() == sample.rank() + 1 &&
         (input.any_length || std::equal(sample.begin(), sample.begin() + sample.rank(), shape.begin() + 1));
}

struct Given {
  const Input* input;
  const tessera_tensor* tensor;
  DType dtype;
  Shape shape;
};

const Input& named(const std::vector<Input>& inputs, const tessera_tensor& given, std::int32_t index) {
  if (given.name == nullptr && index == 0) return inputs.front();
  TESSERA_CHECK(given.name != nullptr, ConfigError, "input ", index, " has no name; needs one of ", names_of(inputs));
  const auto found = std::ranges::find(inputs, std::string_view(given.name), [](const Input& input) { return input.field.name; });
  TESSERA_CHECK(found != inputs.end(), ConfigError, "input ", index, " is called '", given.name, "'; the network has ",
                names_of(inputs));
  return *found;
}

Given checked(const std::vector<Input>& inputs, const tessera_tensor& tensor, std::int32_t index) {
  const Input& input = named(inputs, tensor, index);
  const std::string what = str("input '", input.field.name, "'");
  const Given given{&input, &tensor, dtype_in_cpp(tensor, what), shape_in_cpp(tensor, what)};
  TESSERA_CHECK(given.dtype == input.field.dtype || (input.pixels && given.dtype == DType::u8), DTypeError,
                told(input, given.dtype, given.shape), "; needs ", wanted(input));
  TESSERA_CHECK(fits(input, given.shape), ShapeError, told(input, given.dtype, given.shape), "; needs ", wanted(input));
  return given;
}

// The tensors in the order of the network's inputs.
std::vector<Given> all_checked(const std::vector<Input>& inputs, const tessera_tensor* tensors, std::int32_t count) {
  TESSERA_CHECK(count >= 1 && count <= static_cast<std::int32_t>(inputs.size()), ConfigError, "input_count is ", count,
                "; the network has ", names_of(inputs));
  TESSERA_CHECK(tensors != nullptr, ConfigError, "inputs is null, input_count is ", count);
  std::vector<Given> all;
  for (std::int32_t i = 0; i < count; ++i) {
    all.push_back(checked(inputs, tensors[i], i));
    const auto same = std::ranges::count(all, all.back().input, &Given::input);
    TESSERA_CHECK(same == 1, ConfigError, "input '", all.back().input->field.name, "' is given twice");
  }
  std::ranges::sort(all, {}, [](const Given& given) { return given.input; });
  const Given& first = all.front();
  TESSERA_CHECK(first.input == inputs.data(), ConfigError, "input '", inputs.front().field.name, "' is missing; needs ",
                wanted(inputs.front()));
  for (const Given& given : all) {  // the other inputs cover the same positions as the first
    TESSERA_CHECK(given.shape == first.shape, ShapeError, told(*given.input, given.dtype, given.shape), ", '",
                  first.input->field.name, "' is ", first.shape, "; must have the same shape");
  }
  return all;
}

Tensor tensor_of(const Given& given) {
  const Tensor lent = Tensor::lent(given.tensor->data, given.shape, given.dtype);
  if (!given.input->pixels || given.dtype != DType::u8) return lent;
  const Tensor normalised = Tensor::empty(given.shape);
  given.input->pixels->apply({lent.data<std::uint8_t>(), lent.bytes()}, normalised.data<float>());
  return normalised;
}

}  // namespace

Shape check_inputs(const std::vector<Input>& inputs, const tessera_tensor* given, std::int32_t count) {
  return all_checked(inputs, given, count).front().shape;
}

std::vector<NamedTensor> tensors_of(const std::vector<Input>& inputs, const tessera_tensor* given, std::int32_t count) {
  std::vector<NamedTensor> parts;
  for (const Given& one : all_checked(inputs, given, count)) {
    TESSERA_CHECK(one.tensor->data != nullptr, ConfigError, "input '", one.input->field.name, "': its data is null");
    parts.push_back({one.input->field.name, tensor_of(one)});
  }
  return parts;
}

Shape check_output(const tessera_tensor* given, std::int32_t count) {
  TESSERA_CHECK(count == 1, ConfigError, "output_count is ", count, "; the network has one, ", kOutputName);
  TESSERA_CHECK(given != nullptr, ConfigError, "outputs is null, output_count is 1");
  TESSERA_CHECK(given->name == nullptr || std::string_view(given->name) == kOutputName, ConfigError, "output 0 is called '",
                given->name, "'; the network has ", kOutputName);
  const std::string what = str("output '", kOutputName, "'");
  const DType dtype = dtype_in_cpp(*given, what);
  const Shape shape = shape_in_cpp(*given, what);
  TESSERA_CHECK(dtype == DType::f32, DTypeError, what, " is ", name_in_c(dtype), ' ', shape, "; needs float32");
  TESSERA_CHECK(given->data != nullptr, ConfigError, what, ": its data is null");
  return shape;
}

}  // namespace tessera::capi
