// Messages of the ops that move elements, and the bytes that views share with their inputs.
#include "core/ops/view.h"

#include <gtest/gtest.h>

#include "core/autograd/backward.h"
#include "core/ops/concat.h"
#include "core/ops/embedding.h"
#include "core/ops/gather.h"
#include "core/ops/pad.h"
#include "tests/support/message_of.h"

namespace tessera {
namespace {

const Var x(Tensor::full({2, 3}, 1.0));

TEST(View, SharesTheInputsBytes) {
  EXPECT_TRUE(reshape(x, {6}).value().shares_storage(x.value()));
  EXPECT_TRUE(permute(x, {1, 0}).value().shares_storage(x.value()));
  EXPECT_TRUE(slice(x, 1, 0, 2).value().shares_storage(x.value()));
  EXPECT_TRUE(flatten(x).value().shares_storage(x.value()));
}

TEST(View, NamesSizesThatDoNotFit) {
  EXPECT_EQ(message_of([] { reshape(x, {5}); }), "reshape: [2, 3] has 6 elements, [5] has 5");
  EXPECT_EQ(message_of([] { permute(x, {0, 0}); }), "permute: axis 0 stands twice; shape is [2, 3]");
  EXPECT_EQ(message_of([] { slice(x, 1, 1, 4); }), "slice: 1 to 4 of axis 1, shape is [2, 3]");
  EXPECT_EQ(message_of([] { flatten(Var(Tensor::scalar(1.0))); }), "flatten: x is a scalar, needs at least 1 dimension");
}

TEST(Concat, NamesInputsThatDoNotFit) {
  EXPECT_EQ(message_of([] { concat(std::span<const Var>(), 0); }), "concat: no inputs; needs at least 1");
  EXPECT_EQ(message_of([] { concat({x, Var(Tensor::full({2, 4}, 1.0))}, 0); }),
            "concat: shapes differ beside axis 0: first input is [2, 3], another is [2, 4]");
  EXPECT_EQ(message_of([] { concat({x, Var(Tensor::full({2}, 1.0))}, 0); }),
            "concat: ranks differ: first input is [2, 3], another is [2]");
}

TEST(Pad, NamesPaddingThatDoesNotFit) {
  const std::vector<std::pair<std::int64_t, std::int64_t>> one{{1, 1}};
  const std::vector<std::pair<std::int64_t, std::int64_t>> negative{{1, 1}, {-1, 0}};
  EXPECT_EQ(message_of([&] { pad(x, one); }), "pad: 1 pairs for x [2, 3]; needs one per axis");
  EXPECT_EQ(message_of([&] { pad(x, negative); }), "pad: padding of axis 1 is -1 and 0; needs sizes of at least 0");
}

TEST(Gather, NamesTheIndexOutOfRange) {
  const Tensor index = Tensor::from(std::vector<std::int64_t>{0, 3}, {2, 1});
  EXPECT_EQ(message_of([&] { gather(x, 1, index); }),
            "gather: index 3 is out of range; needs 0 to 2: axis is 1, x is [2, 3]");
  EXPECT_EQ(message_of([&] { gather(x, 1, Tensor::zeros({3, 1}, DType::i64)); }),
            "gather: shapes do not fit: x is [2, 3], index is [3, 1]; needs one rank, and no axis of index but 1 longer than "
            "x's");
}

TEST(Embedding, NamesTheIdOutOfRange) {
  const Tensor ids = Tensor::from(std::vector<std::int64_t>{0, 2}, {2});
  EXPECT_EQ(message_of([&] { embedding(ids, x); }), "embedding: id out of range: ids[1] is 2; needs 0 to 1, weight is [2, 3]");
}

}  // namespace
}  // namespace tessera
