#include "tests/support/op_cases.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace tessera::testing {
namespace {

void append(std::vector<OpCase>& all, std::vector<OpCase> more) {
  all.insert(all.end(), std::make_move_iterator(more.begin()), std::make_move_iterator(more.end()));
}

}  // namespace

OpCase op_case(std::string name, const std::vector<Shape>& shapes, std::function<Var(std::span<const Var>)> op,
               std::function<Tensor(std::span<const Tensor>)> reference) {
  OpCase c;
  c.name = std::move(name);
  for (const Shape& shape : shapes) c.inputs.push_back({.shape = shape});
  c.op = std::move(op);
  c.reference = std::move(reference);
  return c;
}

OpCase with_parameters(OpCase row) {
  for (std::size_t i = 1; i < std::min<std::size_t>(row.inputs.size(), 3); ++i) row.inputs[i].parameter = true;
  return row;
}

std::vector<OpCase> all_op_cases() {
  std::vector<OpCase> all = elementwise_op_cases();
  append(all, reduction_op_cases());
  append(all, view_op_cases());
  append(all, dense_op_cases());
  append(all, pool_op_cases());
  append(all, norm_op_cases());
  append(all, attention_op_cases());
  append(all, sparse_attention_op_cases());
  return all;
}

}  // namespace tessera::testing
