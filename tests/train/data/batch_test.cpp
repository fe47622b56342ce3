#include "train/data/batch.h"

#include <gtest/gtest.h>

#include "core/support/error.h"
#include "tests/support/message_of.h"

namespace tessera {
namespace {

const std::vector<Field> kFields{{"tokens", DType::i64, {5}}, {"weight", DType::f32, {}}};

TEST(Batch, HasAPartForEachFieldWithTheSamplesAhead) {
  const Batch batch = Batch::zeros(kFields, 3);
  EXPECT_EQ(batch.samples(), 3);
  EXPECT_EQ(batch.fields(), kFields);
  EXPECT_EQ(batch.at("tokens").shape(), (Shape{3, 5}));
  EXPECT_EQ(batch.at("weight").shape(), (Shape{3}));
  EXPECT_TRUE(batch.input().shares_storage(batch.at("tokens")));
  EXPECT_EQ(Batch::empty(kFields, 0).at("tokens").shape(), (Shape{0, 5}));
  EXPECT_EQ(Batch::empty_like(batch).fields(), kFields);
}

TEST(Batch, ASliceShowsItsSamplesOfEveryPart) {
  const Batch batch{{"x", Tensor::from(std::vector<float>{0, 1, 2, 3, 4, 5}, {3, 2})},
                    {"y", Tensor::from(std::vector<std::int64_t>{7, 8, 9}, {3})}};
  const Batch slice = batch.slice(1, 3);
  EXPECT_EQ(slice.at("x").to_vector<float>(), (std::vector<float>{2, 3, 4, 5}));
  EXPECT_EQ(slice.at("y").to_vector<std::int64_t>(), (std::vector<std::int64_t>{8, 9}));
  const Batch copy = Batch::empty_like(slice);
  copy.copy_from(slice);
  EXPECT_EQ(copy.at("y").to_vector<std::int64_t>(), (std::vector<std::int64_t>{8, 9}));
}

TEST(Batch, NamesWhatIsWrong) {
  const Batch batch = Batch::zeros(kFields, 3);
  EXPECT_EQ(message_of<InternalError>([&] { batch.at("label"); }), "batch: no part 'label'; it has tokens, weight");
  EXPECT_EQ(message_of<ShapeError>([] {
              Batch({{"x", Tensor::zeros({2, 4})}, {"y", Tensor::zeros({3})}});
            }),
            "batch: x is [2, 4], y is [3]; needs the same number of samples along the first dimension");
}

}  // namespace
}  // namespace tessera
