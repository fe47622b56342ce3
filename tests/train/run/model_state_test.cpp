#include "train/run/model_state.h"

#include <gtest/gtest.h>

#include "core/support/error.h"
#include "layers/batch_norm.h"
#include "layers/linear.h"
#include "layers/sequential.h"
#include "tests/support/message_of.h"

namespace tessera {
namespace {

std::unique_ptr<Module> make_model(std::uint64_t seed) {
  auto model = std::make_unique<Sequential>();
  model->add_child("fc", std::make_unique<Linear>(LinearConfig{.in = 3, .out = 2}));
  model->add_child("bn", std::make_unique<BatchNorm>(BatchNormConfig{.channels = 2}));
  initialize(*model, seed);
  return model;
}

std::vector<float> values_of(const State& state) {
  std::vector<float> values;
  for (const auto& [name, tensor] : state.tensors) {
    if (tensor.dtype() != DType::f32) continue;
    const std::vector<float> part = tensor.to_vector<float>();
    values.insert(values.end(), part.begin(), part.end());
  }
  return values;
}

std::string error_of(Module& model, const State& state) {
  return message_of<IoError>([&] { load_model_state(model, state); });
}

TEST(ModelState, RoundTripKeepsValuesMasksAndBuffers) {
  const auto source = make_model(1);
  source->child("fc").parameter("weight").set_mask(Tensor::from<std::uint8_t>({1, 0, 1, 1, 0, 1}, {2, 3}));
  source->child("bn").buffers()[0]->value.fill(0.25);
  const State state = model_state(*source);
  const auto target = make_model(2);
  ASSERT_NE(values_of(model_state(*target)), values_of(state));
  load_model_state(*target, state);
  const State loaded = model_state(*target);
  EXPECT_EQ(values_of(loaded), values_of(state));
  EXPECT_EQ(loaded.tensors.size(), 7u);  // four parameters, one mask, two buffers
  EXPECT_EQ(target->child("fc").parameter("weight").mask().to_vector<std::uint8_t>(),
            (std::vector<std::uint8_t>{1, 0, 1, 1, 0, 1}));
  EXPECT_EQ(loaded.tensors.at("fc.weight.mask").to_vector<std::uint8_t>(), (std::vector<std::uint8_t>{0b101101})) << "a bit each";
  EXPECT_EQ(loaded.tensors.at("bn.running_mean").to_vector<float>(), (std::vector<float>{0.25f, 0.25f}));
}

TEST(ModelState, LoadedValuesShareNothingWithTheState) {
  const auto source = make_model(1);
  const auto target = make_model(2);
  load_model_state(*target, model_state(*source));
  target->child("fc").parameter("weight").value().fill(7);
  target->child("bn").buffers()[0]->value.fill(7);
  EXPECT_NE(source->child("fc").parameter("weight").value().to_vector<float>()[0], 7.0f);
  EXPECT_EQ(source->child("bn").buffers()[0]->value.to_vector<float>()[0], 0.0f);
}

TEST(ModelState, AStateWithoutMaskMakesTheParameterDense) {
  const auto source = make_model(1);
  const auto target = make_model(2);
  target->child("fc").parameter("weight").set_mask(Tensor::zeros({2, 3}, DType::u8));
  load_model_state(*target, model_state(*source));
  EXPECT_FALSE(target->child("fc").parameter("weight").mask().defined());
}

TEST(ModelState, ListsEveryFaultAndLeavesTheModelAlone) {
  const auto source = make_model(1);
  State state;
  for (const auto& [name, tensor] : model_state(*source).tensors) state.tensors[name] = tensor.clone();
  state.tensors.erase("fc.bias");
  state.tensors.erase("bn.running_var");
  state.tensors["fc.weight"] = Tensor::zeros({2, 5});
  state.tensors["bn.weight"] = Tensor::zeros({2}, DType::f64);
  state.tensors["bn.bias.mask"] = Tensor::zeros({3}, DType::u8);
  state.tensors["head.weight"] = Tensor::zeros({1});
  const auto target = make_model(2);
  const std::vector<float> before = values_of(model_state(*target));
  EXPECT_EQ(error_of(*target, state),
            "weights do not fit the model:\n"
            "  mismatched: fc.weight is f32 [2, 5] on cpu, the model needs f32 [2, 3] on cpu\n"
            "  missing: fc.bias [2]\n"
            "  mismatched: bn.weight is f64 [2] on cpu, the model needs f32 [2] on cpu\n"
            "  mismatched: bn.bias.mask is u8 [3] on cpu, the model needs u8 [1]\n"
            "  missing: bn.running_var [2]\n"
            "  unexpected: head.weight [1]");
  EXPECT_EQ(values_of(model_state(*target)), before);
}

}  // namespace
}  // namespace tessera
