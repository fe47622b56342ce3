#include "train/onnx/graph.h"

#include <algorithm>
#include <span>

#include "core/config/value.h"
#include "core/finite.h"
#include "core/support/error.h"

namespace tessera {
namespace {

std::vector<OnnxSize> sizes_of(const Shape& shape, const std::vector<OnnxSize>& told) {
  std::vector<OnnxSize> sizes(shape.begin(), shape.end());
  std::ranges::copy(told, sizes.begin());
  return sizes;
}

std::string text_of(std::span<const std::int64_t> values) {
  std::string text;
  for (const std::int64_t value : values) text += str(text.empty() ? "" : ",", value);
  return text;
}

}  // namespace

std::string OnnxBuilder::unique(const std::string& name) {
  const int count = names_[name]++;
  return count == 0 ? name : str(name, ':', count);
}

OnnxValue OnnxBuilder::input(const std::string& name, OnnxType type, const Shape& shape, const std::vector<OnnxSize>& told) {
  graph_.inputs.push_back({name, type, sizes_of(shape, told)});
  return {.name = name, .shape = shape};
}

OnnxValue OnnxBuilder::optional_input(const std::string& name, OnnxType type, const Tensor& value,
                                      const std::vector<OnnxSize>& told) {
  const auto known = tensors_.find(name);
  if (known != tensors_.end()) return known->second;
  graph_.inputs.push_back({name, type, sizes_of(value.shape(), told)});
  OnnxValue result = tensor(name, value);
  result.batched = true;
  tensors_[name] = result;
  return result;
}

OnnxValue OnnxBuilder::tensor(const std::string& name, const Tensor& values) {
  const auto known = tensors_.find(name);
  if (known != tensors_.end()) {
    TESSERA_CHECK(known->second.shape == values.shape(), InternalError, "onnx: '", name, "' is ", known->second.shape, " and ",
                  values.shape());
    return known->second;
  }
  OnnxTensor initializer{.name = name, .type = OnnxType::f32, .values = values.to(Device::cpu())};
  if (values.dtype() == DType::i64) {
    initializer.type = OnnxType::i64;
  } else if (values.dtype() == DType::u8) {
    initializer.type = OnnxType::boolean;
  } else {
    initializer.values = initializer.values.to(DType::f32);
  }
  initializer.values = initializer.values.contiguous();
  TESSERA_CHECK(all_finite(initializer.values), NumericError, "export: '", name, "' contains NaN or Inf");
  graph_.initializers.push_back(std::move(initializer));
  return tensors_.emplace(name, OnnxValue{.name = name, .shape = values.shape(), .batched = false}).first->second;
}

OnnxValue OnnxBuilder::number(double value) { return tensor("number/" + to_json(Value(value)), Tensor::scalar(value)); }

OnnxValue OnnxBuilder::integers(const std::vector<std::int64_t>& values) {
  return tensor("integers/" + text_of(values), Tensor::from(values, {std::ssize(values)}));
}

OnnxValue OnnxBuilder::integer(std::int64_t value) {
  return tensor(str("integer/", value), Tensor::from(std::vector<std::int64_t>{value}, {}));
}

std::vector<OnnxValue> OnnxBuilder::node(const std::string& op, const std::vector<OnnxValue>& inputs,
                                         const std::vector<Shape>& shapes, OnnxAttributes attributes) {
  const std::string name = unique(path_.empty() ? op : path_ + "/" + op);
  OnnxNode made{.op = op, .name = name, .inputs = {}, .outputs = {}, .attributes = std::move(attributes)};
  for (const OnnxValue& input : inputs) made.inputs.push_back(input.name);
  const bool batched = std::ranges::any_of(inputs, [](const OnnxValue& input) { return input.batched; });
  std::vector<OnnxValue> results;
  for (std::size_t i = 0; i < shapes.size(); ++i) {
    made.outputs.push_back(shapes.size() == 1 ? name : str(name, "/", i));
    results.push_back({made.outputs.back(), shapes[i], batched, inputs.front().channels_first});
  }
  graph_.nodes.push_back(std::move(made));
  return results;
}

OnnxValue OnnxBuilder::binary(const std::string& op, const OnnxValue& a, const OnnxValue& b) {
  const bool images = a.shape.rank() == 4 && b.shape.rank() == 4 && a.batched && b.batched;
  if (!images) {
    const OnnxValue left = channels_last(a), right = channels_last(b);
    return apply(op, {left, right}, broadcast_shapes(left.shape, right.shape, "onnx"));
  }
  const OnnxValue right = a.channels_first ? channels_first(b) : channels_last(b);
  return apply(op, {a, right}, broadcast_shapes(a.shape, right.shape, "onnx"));
}

OnnxValue OnnxBuilder::matmul(const OnnxValue& a, const OnnxValue& b) {
  TESSERA_CHECK(a.shape.dim(-1) == b.shape.dim(-2), InternalError, "onnx: matmul of ", a.shape, " and ", b.shape);
  const auto before = [](const Shape& shape) { return Shape(std::span(shape.begin(), shape.end() - 2)); };
  const Shape shape = broadcast_shapes(before(a.shape), before(b.shape), "onnx");
  return apply("MatMul", {a, b}, shape.append(a.shape.dim(-2)).append(b.shape.dim(-1)));
}

OnnxValue OnnxBuilder::reshape(const OnnxValue& x, const Shape& shape) {
  TESSERA_CHECK(x.shape.numel() == shape.numel() && !x.channels_first, InternalError, "onnx: reshape of ", x.shape, " to ",
                shape);
  if (x.shape == shape) return x;
  std::vector<std::int64_t> sizes(shape.begin(), shape.end());
  if (x.batched) sizes.front() = -1;
  return apply("Reshape", {x, integers(sizes)}, shape);
}

OnnxValue OnnxBuilder::reshape(const OnnxValue& x, const Shape& shape, const std::vector<std::int64_t>& sizes) {
  return reshape(x, shape, integers(sizes));
}

OnnxValue OnnxBuilder::reshape(const OnnxValue& x, const Shape& shape, const OnnxValue& sizes) {
  TESSERA_CHECK(x.shape.numel() == shape.numel() && !x.channels_first, InternalError, "onnx: reshape of ", x.shape, " to ",
                shape);
  return apply("Reshape", {x, sizes}, shape);
}

OnnxValue OnnxBuilder::permute(const OnnxValue& x, const std::vector<std::int64_t>& axes) {
  Shape shape = x.shape;
  for (std::size_t i = 0; i < axes.size(); ++i) shape.set(static_cast<int>(i), x.shape[static_cast<int>(axes[i])]);
  return apply("Transpose", {x}, shape, {{"perm", axes}});
}

OnnxValue OnnxBuilder::mean(const OnnxValue& x, std::int64_t axis, bool keep) {
  Shape shape = x.shape;
  if (keep) {
    shape.set(static_cast<int>(axis), 1);
  } else {
    shape = shape.erase(static_cast<int>(axis));
  }
  return apply("ReduceMean", {x}, shape, {{"axes", std::vector<std::int64_t>{axis}}, {"keepdims", std::int64_t{keep}}});
}

std::vector<OnnxValue> OnnxBuilder::split(const OnnxValue& x, int axis, const std::vector<std::int64_t>& sizes) {
  std::vector<Shape> shapes(sizes.size(), x.shape);
  for (std::size_t i = 0; i < sizes.size(); ++i) shapes[i].set(axis, sizes[i]);
  return node("Split", {x, integers(sizes)}, shapes, {{"axis", std::int64_t{axis}}});
}

OnnxValue OnnxBuilder::gather(const OnnxValue& table, const OnnxValue& indices, int axis, const Shape& shape) {
  return apply("Gather", {table, indices}, shape, {{"axis", std::int64_t{axis}}});
}

OnnxValue OnnxBuilder::sizes(const OnnxValue& x) {
  OnnxValue result = apply("Shape", {x}, {x.shape.rank()});
  result.batched = false;
  return result;
}

OnnxValue OnnxBuilder::range(const OnnxValue& count, std::int64_t here) {
  return apply("Range", {integer(0), count, integer(1)}, {here});
}

OnnxValue OnnxBuilder::leading(const OnnxValue& x, const std::vector<std::int64_t>& axes, const OnnxValue& count,
                               std::int64_t here) {
  Shape shape = x.shape;
  for (const std::int64_t axis : axes) shape.set(static_cast<int>(axis), here);
  const OnnxValue end = apply("Unsqueeze", {count, integers({0})}, {1});
  const std::vector<OnnxValue> all(axes.size(), end);
  const OnnxValue ends = axes.size() == 1 ? end : apply("Concat", all, {std::ssize(axes)}, {{"axis", std::int64_t{0}}});
  const std::vector<std::int64_t> begins(axes.size(), 0);
  return apply("Slice", {x, integers(begins), ends, integers(axes)}, shape);
}

OnnxValue OnnxBuilder::transposed(const OnnxValue& x, const std::vector<std::int64_t>& axes, bool channels_first) {
  OnnxValue result = x;
  result.channels_first = channels_first;
  const auto known = transposed_.find(x.name);
  if (known != transposed_.end()) {
    result.name = known->second;
    return result;
  }
  result.name = apply("Transpose", {x}, x.shape, {{"perm", axes}}).name;
  transposed_[x.name] = result.name;
  transposed_[result.name] = x.name;
  return result;
}

OnnxValue OnnxBuilder::channels_first(const OnnxValue& x) {
  TESSERA_CHECK(x.shape.rank() == 4, InternalError, "onnx: '", x.name, "' is ", x.shape, "; needs an image");
  return x.channels_first ? x : transposed(x, {0, 3, 1, 2}, true);
}

OnnxValue OnnxBuilder::channels_last(const OnnxValue& x) { return x.channels_first ? transposed(x, {0, 2, 3, 1}, false) : x; }

OnnxGraph OnnxBuilder::finish(const OnnxValue& result, const std::string& name, const std::vector<OnnxSize>& told) {
  enter("");
  const OnnxValue last = channels_last(result);
  const auto makes = [&](const OnnxNode& node) { return std::ranges::find(node.outputs, last.name) != node.outputs.end(); };
  if (std::ranges::none_of(graph_.nodes, makes)) unary("Identity", last);
  const std::string old = std::ranges::any_of(graph_.nodes, makes) ? last.name : graph_.nodes.back().outputs.front();
  for (OnnxNode& node : graph_.nodes) {
    std::ranges::replace(node.inputs, old, name);
    std::ranges::replace(node.outputs, old, name);
  }
  graph_.outputs.push_back({name, OnnxType::f32, sizes_of(last.shape, told)});
  return std::move(graph_);
}

}  // namespace tessera
