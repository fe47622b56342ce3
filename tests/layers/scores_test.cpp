#include "layers/scores.h"

#include <gtest/gtest.h>

namespace tessera {
namespace {

// Answers with ones, and keeps what it was asked.
class Asked final : public Module {
 public:
  std::string_view kind() const override { return "asked"; }
  Value config() const override { return Value::map(); }
  Var forward(const Var& x, const Context&) override {
    x_ = x.value();
    return Var(Tensor::full({x.value().dim(0), 2}, 1, answer_));
  }
  Shape output_shape(const Shape& input, Trace*) const override { return {input.dim(0), 2}; }

  Tensor x_;
  DType answer_ = DType::f32;
};

TEST(Scores, RealNumbersAreRoundedToTheComputeType) {
  Asked network;
  network.answer_ = DType::bf16;
  const Var answer = scores(network, Tensor::full({3, 1}, 0.1), Context{}, DType::bf16);
  EXPECT_EQ(network.x_.dtype(), DType::bf16);
  EXPECT_EQ(answer.value().dtype(), DType::f32);
}

TEST(Scores, WholeNumbersStayWhatTheyAre) {
  for (const DType compute : {DType::f32, DType::bf16}) {
    Asked network;
    network.answer_ = compute;
    const Tensor tokens = Tensor::from(std::vector<std::int64_t>{70001, 257, 0}, {3, 1});  // bf16 has no 257
    const Var answer = scores(network, tokens, Context{}, compute);
    EXPECT_EQ(network.x_.dtype(), DType::i64);
    EXPECT_EQ(network.x_.to_vector<std::int64_t>(), (std::vector<std::int64_t>{70001, 257, 0}));
    EXPECT_EQ(answer.value().dtype(), DType::f32);
  }
}

}  // namespace
}  // namespace tessera
