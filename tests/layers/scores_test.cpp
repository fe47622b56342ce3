#include "layers/scores.h"

#include <gtest/gtest.h>

#include "tests/support/message_of.h"

namespace tessera {
namespace {

// Answers with ones and records its input.
class Asked final : public Module {
 public:
  std::string_view kind() const override { return "asked"; }
  Value config() const override { return Value::map(); }
  Var forward(const Var& x, const Context& context) override {
    x_ = x.value();
    const Tensor* const mask = context.find("mask");
    if (mask != nullptr) mask_ = *mask;
    names_.clear();
    for (const NamedTensor& input : context.inputs) names_.push_back(input.name);
    return Var(Tensor::full({x.value().dim(0), 2}, 1, answer_));
  }
  Shape output_shape(const Shape& input, Trace*) const override { return {input.dim(0), 2}; }

  Tensor x_, mask_;
  std::vector<std::string> names_;
  DType answer_ = DType::f32;
};

using Parts = std::vector<NamedTensor>;

TEST(Scores, RealNumbersAreRoundedToTheComputeType) {
  Asked network;
  network.answer_ = DType::bf16;
  const Var answer = scores(network, Parts{{"x", Tensor::full({3, 1}, 0.1)}}, Context{}, DType::bf16);
  EXPECT_EQ(network.x_.dtype(), DType::bf16);
  EXPECT_EQ(answer.value().dtype(), DType::f32);
}

TEST(Scores, WholeNumbersStayWhatTheyAre) {
  for (const DType compute : {DType::f32, DType::bf16}) {
    Asked network;
    network.answer_ = compute;
    const Tensor tokens = Tensor::from(std::vector<std::int64_t>{70001, 257, 0}, {3, 1});  // bf16 cannot represent 257
    const Var answer = scores(network, Parts{{"tokens", tokens}}, Context{}, compute);
    EXPECT_EQ(network.x_.dtype(), DType::i64);
    EXPECT_EQ(network.x_.to_vector<std::int64_t>(), (std::vector<std::int64_t>{70001, 257, 0}));
    EXPECT_EQ(answer.value().dtype(), DType::f32);
  }
}

TEST(Scores, LayersFindWhatASampleHasBesideX) {
  Asked network;
  scores(network, Parts{{"x", Tensor::full({3, 1}, 0.1)}}, Context{}, DType::f32);
  EXPECT_FALSE(network.mask_.defined()) << "an input that there is not";
  const Tensor mask = Tensor::full({3, 4}, 0.1);
  network.answer_ = DType::bf16;
  scores(network, Parts{{"x", Tensor::full({3, 1}, 0.1)}, {"mask", mask}}, Context{}, DType::bf16);
  EXPECT_TRUE(network.mask_.shares_storage(mask)) << "only x is rounded";
  EXPECT_EQ(network.names_, (std::vector<std::string>{"x", "mask"}));
  EXPECT_EQ(message_of<InternalError>([&] { scores(network, {}, Context{}, DType::f32); }), "scores: no input is given");
}

}  // namespace
}  // namespace tessera
