#include "train/plan/named_inputs.h"

#include <gtest/gtest.h>

#include "layers/sequential.h"
#include "tests/support/message_of.h"

namespace tessera {
namespace {

class Words final : public Dataset {
 public:
  std::string_view name() const override { return "words"; }
  std::int64_t size() const override { return 3; }
  const std::vector<Field>& fields() const override { return fields_; }
  std::size_t bytes() const override { return 0; }
  void assemble(std::span<const std::int64_t>, std::optional<std::int64_t>, const Batch&) const override {}
  std::string fingerprint() const override { return "0"; }
  Value description() const override { return Value::map(); }
  std::string origin(std::int64_t) const override { return ""; }

 private:
  std::vector<Field> fields_{{"tokens", DType::i64, {5}, 11}, {"segments", DType::i64, {5}}};
};

class Needy final : public Module {
 public:
  explicit Needy(std::vector<std::string> needs) : needs_(std::move(needs)) {}
  std::string_view kind() const override { return "needy"; }
  Value config() const override { return Value::map(); }
  Var forward(const Var& x, const Context&) override { return x; }
  Shape output_shape(const Shape& input, Trace*) const override { return input; }
  std::vector<std::string> named_inputs() const override { return needs_; }

 private:
  std::vector<std::string> needs_;
};

TEST(NamedInputs, AreFieldsOfTheDataSet) {
  Sequential network;
  network.add_child("first", std::make_unique<Needy>(std::vector<std::string>{}));
  network.add_child("second", std::make_unique<Needy>(std::vector<std::string>{"segments", "tokens"}));
  EXPECT_NO_THROW(check_named_inputs(network, Words()));
  network.add_child("third", std::make_unique<Needy>(std::vector<std::string>{"segments", "key_mask"}));
  EXPECT_EQ(message_of<ConfigError>([&] { check_named_inputs(network, Words()); }),
            "layer 'third' (needy) needs the input 'key_mask', which samples of words do not have; they have tokens, segments");
}

}  // namespace
}  // namespace tessera
