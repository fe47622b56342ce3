// Rows for operations that move elements: views, concat, pad, gather, embedding.
#include <array>

#include "core/ops/concat.h"
#include "core/ops/embedding.h"
#include "core/ops/gather.h"
#include "core/ops/pad.h"
#include "core/ops/view.h"
#include "tests/support/op_cases.h"
#include "tests/support/reference.h"

namespace tessera::testing {
namespace {

void add_reshapes(std::vector<OpCase>& cases) {
  const auto add = [&](const std::string& name, const Shape& from, const Shape& to, std::function<Var(const Var&)> op) {
    cases.push_back({.name = name,
                     .inputs = {{from}},
                     .op = [op](std::span<const Var> in) { return op(in[0]); },
                     .reference = [to](std::span<const Tensor> in) {
                       std::vector<double> values;
                       for_each_index(in[0].shape(), [&](const Index& i) { values.push_back(element(in[0], i)); });
                       return Tensor::from(values, to);
                     }});
  };
  add("reshape/split", {6, 7}, {2, 3, 7}, [](const Var& x) { return reshape(x, {2, 3, 7}); });
  add("reshape/merge", {3, 5, 7}, {105}, [](const Var& x) { return reshape(x, {105}); });
  add("reshape/scalar", {1, 1}, {}, [](const Var& x) { return reshape(x, {}); });
  add("reshape/zero", {0, 3}, {3, 0, 2}, [](const Var& x) { return reshape(x, {3, 0, 2}); });
  add("flatten/image", {2, 3, 5, 7}, {2, 105}, flatten);
  add("flatten/vector", {3}, {3, 1}, flatten);
  add("flatten/zero", {0, 3, 5}, {0, 15}, flatten);
}

void add_permutes(std::vector<OpCase>& cases) {
  const auto add = [&](const std::string& variant, const Shape& from, const std::vector<int>& axes) {
    cases.push_back({.name = "permute/" + variant,
                     .inputs = {{from}},
                     .op = [axes](std::span<const Var> in) { return permute(in[0], axes); },
                     .reference = [axes](std::span<const Tensor> in) {
                       Shape shape = in[0].shape();
                       for (std::size_t i = 0; i < axes.size(); ++i) shape.set(static_cast<int>(i), in[0].dim(axes[i]));
                       return build(shape, [&](const Index& to) {
                         Index from_index(to.size());
                         for (std::size_t i = 0; i < axes.size(); ++i) {
                           from_index[static_cast<std::size_t>(normalize_axis(axes[i], in[0].rank(), "reference"))] = to[i];
                         }
                         return element(in[0], from_index);
                       });
                     }});
  };
  add("transpose", {5, 7}, {1, 0});
  add("nhwc_to_nchw", {2, 3, 5, 7}, {0, 3, 1, 2});
  add("negative_axes", {3, 5, 7}, {-1, 0, 1});
  add("zero", {0, 3}, {1, 0});
  add("one", {1}, {0});
}

void add_slices(std::vector<OpCase>& cases) {
  const auto add = [&](const std::string& variant, const Shape& from, int axis, std::int64_t begin, std::int64_t end) {
    cases.push_back({.name = "slice/" + variant,
                     .inputs = {{from}},
                     .op = [=](std::span<const Var> in) { return slice(in[0], axis, begin, end); },
                     .reference = [=](std::span<const Tensor> in) {
                       const int at = normalize_axis(axis, in[0].rank(), "reference");
                       Shape shape = in[0].shape();
                       shape.set(at, end - begin);
                       return build(shape, [&](Index i) {
                         i[static_cast<std::size_t>(at)] += begin;
                         return element(in[0], i);
                       });
                     }});
  };
  add("rows", {7, 5}, 0, 2, 5);
  add("columns", {7, 5}, -1, 1, 4);
  add("all", {7, 5}, 0, 0, 7);
  add("empty", {7, 5}, 1, 3, 3);
  add("one", {1}, 0, 0, 1);
}

void add_concats(std::vector<OpCase>& cases) {
  const auto add = [&](const std::string& variant, const std::vector<Shape>& shapes, int axis) {
    OpCase row;
    row.name = "concat/" + variant;
    for (const Shape& shape : shapes) row.inputs.push_back({shape});
    row.op = [axis](std::span<const Var> in) { return concat(in, axis); };
    row.reference = [axis](std::span<const Tensor> in) {
      const int at = normalize_axis(axis, in[0].rank(), "reference");
      Shape shape = in[0].shape();
      std::int64_t total = 0;
      for (const Tensor& x : in) total += x.dim(at);
      shape.set(at, total);
      return build(shape, [&](Index i) {
        std::size_t which = 0;
        std::int64_t& position = i[static_cast<std::size_t>(at)];
        while (position >= in[which].dim(at)) position -= in[which++].dim(at);
        return element(in[which], i);
      });
    };
    cases.push_back(std::move(row));
  };
  add("rows", {{2, 5}, {3, 5}, {1, 5}}, 0);
  add("channels", {{2, 3, 5}, {2, 3, 7}}, -1);
  add("single", {{3, 5}}, 1);
  add("with_empty", {{2, 5}, {0, 5}, {1, 5}}, 0);
}

void add_pads(std::vector<OpCase>& cases) {
  using Pairs = std::vector<std::pair<std::int64_t, std::int64_t>>;
  const auto add = [&](const std::string& variant, const Shape& from, const Pairs& padding, double value) {
    cases.push_back({.name = "pad/" + variant,
                     .inputs = {{from}},
                     .op = [=](std::span<const Var> in) { return pad(in[0], padding, value); },
                     .reference = [=](std::span<const Tensor> in) {
                       Shape shape = in[0].shape();
                       for (int axis = 0; axis < shape.rank(); ++axis) {
                         const auto& [before, after] = padding[static_cast<std::size_t>(axis)];
                         shape.set(axis, shape[axis] + before + after);
                       }
                       return build(shape, [&](Index i) {
                         for (std::size_t axis = 0; axis < i.size(); ++axis) {
                           i[axis] -= padding[axis].first;
                           if (i[axis] < 0 || i[axis] >= in[0].shape()[static_cast<int>(axis)]) return value;
                         }
                         return element(in[0], i);
                       });
                     }});
  };
  add("image", {2, 3, 5, 1}, {{0, 0}, {1, 2}, {2, 0}, {0, 0}}, 0.0);
  add("value", {7}, {{3, 1}}, -1.5);
  add("nothing", {3, 5}, {{0, 0}, {0, 0}}, 9.0);
  add("empty", {0, 2}, {{1, 1}, {0, 1}}, 0.5);
}

void add_gathers(std::vector<OpCase>& cases) {
  const auto add = [&](const std::string& variant, const Shape& from, int axis, const Shape& shape) {
    std::vector<std::int64_t> picks;
    for (std::int64_t i = 0; i < shape.numel(); ++i) picks.push_back(i * 5 % from.dim(axis));
    cases.push_back({.name = "gather/" + variant,
                     .inputs = {{from}, {.shape = shape, .differentiable = false, .indices = picks}},
                     .op = [axis](std::span<const Var> in) { return gather(in[0], axis, in[1].value()); },
                     .reference = [axis](std::span<const Tensor> in) {
                       return build(in[1].shape(), [&](Index i) {
                         const auto pick = static_cast<std::int64_t>(element(in[1], i));
                         i[static_cast<std::size_t>(normalize_axis(axis, in[0].rank(), "reference"))] = pick;
                         // element() broadcasts axes of size 1; gather never indexes past them.
                         return element(in[0], i);
                       });
                     }});
  };
  add("columns", {5, 7}, 1, {5, 3});
  add("rows_repeated", {3, 7}, 0, {11, 7});
  add("smaller", {4, 5, 7}, -2, {2, 9, 3});
  add("one", {1}, 0, {1});
}

void add_embeddings(std::vector<OpCase>& cases) {
  const auto add = [&](const std::string& variant, const Shape& ids, std::int64_t rows, std::int64_t width) {
    std::vector<std::int64_t> numbers;
    for (std::int64_t i = 0; i < ids.numel(); ++i) numbers.push_back(i * i % rows);
    cases.push_back({.name = "embedding/" + variant,
                     .inputs = {{.shape = ids, .differentiable = false, .indices = numbers}, {{rows, width}}},
                     .op = [](std::span<const Var> in) { return embedding(in[0].value(), in[1]); },
                     .reference = [](std::span<const Tensor> in) {
                       return build(in[0].shape().append(in[1].dim(1)), [&](const Index& i) {
                         const auto id = static_cast<std::int64_t>(element(in[0], Index(i.begin(), i.end() - 1)));
                         return element(in[1], {id, i.back()});
                       });
                     },
                     .bf16 = false});
  };
  add("sequence", {3, 5}, 7, 13);
  add("repeated", {11}, 2, 3);
  add("one", {1}, 1, 1);
  add("threads", {257}, 31, 67);
}

}  // namespace

std::vector<OpCase> view_op_cases() {
  std::vector<OpCase> cases;
  add_reshapes(cases);
  add_permutes(cases);
  add_slices(cases);
  add_concats(cases);
  add_pads(cases);
  add_gathers(cases);
  add_embeddings(cases);
  return cases;
}

}  // namespace tessera::testing
