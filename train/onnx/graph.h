// A graph of ONNX's operators (opset 13) as plain data, and what builds one: emitters name no library, so that graphs are built
// and tested where there is none. train/onnx/encode.h makes a file of it.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "core/tensor.h"

namespace tessera {

enum class OnnxType { f32, i64, boolean };

using OnnxAttribute = std::variant<std::int64_t, float, std::vector<std::int64_t>>;
using OnnxAttributes = std::vector<std::pair<std::string, OnnxAttribute>>;

struct OnnxNode {
  std::string op, name;
  std::vector<std::string> inputs, outputs;
  OnnxAttributes attributes;
};

struct OnnxTensor {
  std::string name;
  OnnxType type = OnnxType::f32;
  Tensor values;  // contiguous on the CPU; u8 of a boolean one
};

using OnnxSize = std::variant<std::int64_t, std::string>;  // a number, or the name of one that is told when the network runs

struct OnnxPort {  // of the graph
  std::string name;
  OnnxType type = OnnxType::f32;
  std::vector<OnnxSize> sizes;
};

struct OnnxGraph {
  std::vector<OnnxPort> inputs, outputs;
  std::vector<OnnxTensor> initializers;  // one with an input's name is that input's default value
  std::vector<OnnxNode> nodes;
  std::map<std::string, std::string> metadata;
};

inline constexpr const char* kOnnxBatch = "batch";  // the size of every input's and output's first axis
inline constexpr const char* kOnnxLength = "length";  // of the second one, where texts may be of any length

// An operator's result, or an initialiser. The shape is in our layout, with a batch of one. Where texts may have any length, it
// has the length of the input that the graph is made from. An image has [n, h, w, c], also where the graph holds it as [n, c, h,
// w].
struct OnnxValue {
  std::string name;
  Shape shape;
  bool batched = true;  // its first axis grows with the batch
  bool channels_first = false;
};

class OnnxBuilder {
 public:
  // Names of nodes made from now on begin with this path.
  void enter(std::string path) { path_ = std::move(path); }
  const std::string& path() const noexcept { return path_; }

  // The leading axes, from the batch on, have the sizes that `told` names; the axes after them are as in `shape`.
  OnnxValue input(const std::string& name, OnnxType type, const Shape& shape, const std::vector<OnnxSize>& told = {kOnnxBatch});
  // An initialiser that a caller may replace by another, whose sizes `told` names likewise.
  OnnxValue optional_input(const std::string& name, OnnxType type, const Tensor& value, const std::vector<OnnxSize>& told);
  // f32, or i64 and u8 (a boolean) as they are. A name that is there already is the tensor of that name. Throws NumericError
  // naming it where it holds NaN or Inf.
  OnnxValue tensor(const std::string& name, const Tensor& values);
  OnnxValue number(double value);
  OnnxValue integers(const std::vector<std::int64_t>& values);  // i64 [size]
  OnnxValue integer(std::int64_t value);  // i64, a scalar

  // A node with as many outputs as `shapes`. They are batched where an input is, and images as the first input is.
  std::vector<OnnxValue> node(const std::string& op, const std::vector<OnnxValue>& inputs, const std::vector<Shape>& shapes,
                              OnnxAttributes attributes = {});
  OnnxValue apply(const std::string& op, const std::vector<OnnxValue>& inputs, const Shape& shape,
                  OnnxAttributes attributes = {}) {
    return node(op, inputs, {shape}, std::move(attributes)).front();
  }
  OnnxValue unary(const std::string& op, const OnnxValue& x) { return apply(op, {x}, x.shape); }
  // Broadcast as ours, by trailing axes.
  OnnxValue binary(const std::string& op, const OnnxValue& a, const OnnxValue& b);
  OnnxValue matmul(const OnnxValue& a, const OnnxValue& b);  // the last two axes; those before them broadcast
  OnnxValue reshape(const OnnxValue& x, const Shape& shape);  // the first axis takes the batch
  // To `sizes`, where 0 keeps the size that x has on the same axis and -1 is what is left over. `shape` is the result for the
  // input that the graph is made from.
  OnnxValue reshape(const OnnxValue& x, const Shape& shape, const std::vector<std::int64_t>& sizes);
  // The same to `sizes`, i64 [rank], which the graph computes.
  OnnxValue reshape(const OnnxValue& x, const Shape& shape, const OnnxValue& sizes);
  OnnxValue permute(const OnnxValue& x, const std::vector<std::int64_t>& axes);
  OnnxValue mean(const OnnxValue& x, std::int64_t axis, bool keep);
  std::vector<OnnxValue> split(const OnnxValue& x, int axis, const std::vector<std::int64_t>& sizes);
  OnnxValue gather(const OnnxValue& table, const OnnxValue& indices, int axis, const Shape& shape);
  OnnxValue sizes(const OnnxValue& x);  // i64 [rank]
  OnnxValue range(const OnnxValue& count, std::int64_t here);  // 0 to count - 1, i64; `here` is the count that the input makes
  // The first `count` of each of these axes.
  OnnxValue leading(const OnnxValue& x, const std::vector<std::int64_t>& axes, const OnnxValue& count, std::int64_t here);

  OnnxValue channels_first(const OnnxValue& x);  // of an image; one transposition for all that read it
  OnnxValue channels_last(const OnnxValue& x);  // what is no image stays as it is

  // The finished graph. Its output is `result` under this name, with the sizes that `told` names.
  OnnxGraph finish(const OnnxValue& result, const std::string& name, const std::vector<OnnxSize>& told = {kOnnxBatch});

 private:
  std::string unique(const std::string& name);
  OnnxValue transposed(const OnnxValue& x, const std::vector<std::int64_t>& axes, bool channels_first);

  OnnxGraph graph_;
  std::string path_;
  std::map<std::string, int> names_;
  std::map<std::string, OnnxValue> tensors_;
  std::map<std::string, std::string> transposed_;  // name of an image, name of its other form
};

}  // namespace tessera
