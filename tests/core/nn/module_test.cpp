#include "core/nn/forward_observer.h"
#include "core/nn/module.h"

#include <gtest/gtest.h>

#include "core/support/error.h"
#include "tests/support/message_of.h"

namespace tessera {
namespace {

class Scale final : public Module {
 public:
  explicit Scale(double value = 1.0, std::int64_t macs = 3) : macs_(macs) { add_parameter("weight", Tensor::full({3}, value)); }
  std::string_view kind() const override { return "scale"; }
  Value config() const override { return Value::map(); }
  Var forward(const Var& x, const Context&) override { return x; }
  Shape output_shape(const Shape& input, Trace* trace) const override {
    trace_leaf(trace, input, input, macs_);
    return input;
  }
  void reset_parameters(std::uint64_t seed) override {
    parameter("weight").set_value(Tensor::full({3}, static_cast<double>(seed)));
  }

 private:
  std::int64_t macs_;
};

class Chain final : public Module {
 public:
  std::string_view kind() const override { return "chain"; }
  Value config() const override { return Value::map(); }
  Var forward(const Var& x, const Context& context) override {
    Var y = x;
    for (const Child& part : children()) y = (*part.module)(y, context);
    return y;
  }
  Shape output_shape(const Shape& input, Trace* trace) const override {
    Shape shape = input;
    for (const Child& part : children()) shape = part.module->output_shape(shape, trace);
    return shape;
  }
};

std::unique_ptr<Module> tree() {
  auto root = std::make_unique<Chain>();
  root->add_child("conv1", std::make_unique<Scale>());
  Module& layer = root->add_child("layer1", std::make_unique<Chain>());
  layer.add_child("0", std::make_unique<Scale>());
  layer.add_child("1", std::make_unique<Scale>());
  return root;
}

TEST(Module, NamesParametersByPath) {
  const auto root = tree();
  std::vector<std::string> paths;
  for (const NamedParameter& named : named_parameters(*root)) paths.push_back(named.path);
  EXPECT_EQ(paths, (std::vector<std::string>{"conv1.weight", "layer1.0.weight", "layer1.1.weight"}));
}

TEST(Module, SubtreesAddedLaterGetTheirPaths) {
  Chain root;
  root.add_child("model", tree());
  EXPECT_EQ(find_module(root, "model.layer1.1").path(), "model.layer1.1");
}

TEST(Module, ReplacesAtAPathAndReturnsTheOld) {
  auto root = tree();
  const auto old = replace_module(root, "layer1.0", std::make_unique<Scale>(5.0));
  EXPECT_EQ(old->path(), "");
  EXPECT_EQ(find_module(*root, "layer1.0").parameter("weight").value().to_vector<float>(), std::vector<float>(3, 5.0f));
  EXPECT_EQ(find_module(*root, "layer1.0").path(), "layer1.0");
  const auto whole = replace_module(root, "", std::make_unique<Scale>());
  EXPECT_EQ(root->kind(), "scale");
  EXPECT_EQ(whole->kind(), "chain");
}

TEST(Module, ErrorsNameWhatThereIs) {
  const auto root = tree();
  EXPECT_THROW(root->add_child("conv1", std::make_unique<Scale>()), ConfigError);
  EXPECT_THROW(root->add_child("a.b", std::make_unique<Scale>()), ConfigError);
  EXPECT_THROW(root->child("fc"), InternalError);
  try {
    find_module(*root, "layer1.2");
    FAIL();
  } catch (const ConfigError& error) {
    EXPECT_NE(std::string(error.what()).find("no module 'layer1.2'; did you mean 'layer1."), std::string::npos) << error.what();
  }
}

TEST(Module, CountsAndInitialises) {
  const auto root = tree();
  EXPECT_EQ(total_cost(*root, {2, 3}).parameters, 9);
  EXPECT_EQ(total_cost(*root, {2, 3}).macs, 9);
  EXPECT_EQ(total_cost(*root, {2, 3}).weight_bytes, 36);
  initialize(*root, 4);
  for (const NamedParameter& named : named_parameters(*root)) {
    EXPECT_EQ(named.parameter->value().to_vector<float>(), std::vector<float>(3, 4.0f));
  }
}

TEST(Module, RefusesMultiplyAddsThatCannotBeCounted) {
  constexpr std::int64_t kHalf = std::int64_t{1} << 62;
  Chain root;
  root.add_child("a", std::make_unique<Scale>(1.0, kHalf));
  EXPECT_EQ(total_cost(root, {2, 3}).macs, kHalf);
  root.add_child("b", std::make_unique<Scale>(1.0, kHalf));
  EXPECT_EQ(root.output_shape({2, 3}, nullptr), (Shape{2, 3}));
  EXPECT_EQ(message_of<ShapeError>([&] { total_cost(root, {2, 3}); }),
            "scale 'b': input is [2, 3], output is [2, 3]: too many multiply-adds to count; a network must have fewer than "
            "2^63 - 1");
}

TEST(ForwardObserver, SeesEveryModuleWithItsInputAndTheNewestScopeAlone) {
  const auto root = tree();
  std::vector<std::string> seen, outer;
  const Var x(Tensor::full({2, 3}, 1));
  {
    const ForwardObserver first([&](const Module& module, const Var&) { outer.push_back(module.path()); });
    {
      const ForwardObserver second([&](const Module& module, const Var& input) {
        EXPECT_EQ(input.shape(), (Shape{2, 3}));
        seen.push_back(module.path());
      });
      (*root)(x, {});
    }
    EXPECT_TRUE(outer.empty());
    (*root)(x, {});
  }
  EXPECT_EQ(outer, seen);
  EXPECT_EQ(seen.front(), "");
  EXPECT_GT(seen.size(), 3U);
  (*root)(x, {});
  EXPECT_EQ(outer, seen);
}

TEST(Parameter, MaskZeroesTheValueAndMustFit) {
  Parameter weight("weight", Tensor::full({3}, 2.0), ParameterRole::weight);
  weight.set_mask(Tensor::from(std::vector<std::uint8_t>{1, 0, 1}, {3}));
  EXPECT_EQ(weight.value().to_vector<float>(), (std::vector<float>{2, 0, 2}));
  EXPECT_THROW(weight.set_mask(Tensor::full({3}, 1.0)), ShapeError);
  EXPECT_THROW(weight.set_value(Tensor::full({4}, 1.0)), ShapeError);
}

}  // namespace
}  // namespace tessera
