#include "train/plan/check_inputs.h"

#include <gtest/gtest.h>

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

class Reader final : public Module {
 public:
  explicit Reader(std::int64_t limit) : limit_(limit) {}
  std::string_view kind() const override { return "reader"; }
  Value config() const override { return Value::map(); }
  Var forward(const Var& x, const Context&) override { return x; }
  Shape output_shape(const Shape& input, Trace*) const override { return input; }
  std::int64_t input_limit() const override { return limit_; }

 private:
  std::int64_t limit_;
};

TEST(CheckInputs, NumbersAreOfTheKindThatTheNetworkReads) {
  const Reader real(0), small(10), right(11);
  EXPECT_NO_THROW(check_inputs(right, Words()));
  EXPECT_EQ(message_of<ConfigError>([&] { check_inputs(real, Words()); }),
            "the network reads real numbers, but the input 'tokens' of words is i64");
  EXPECT_EQ(message_of<ConfigError>([&] { check_inputs(small, Words()); }),
            "the network reads whole numbers below 10, but the input 'tokens' of words has 11 of them");
}

}  // namespace
}  // namespace tessera
