#include "core/tensor.h"

#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <limits>

#include "core/support/error.h"
#include "tests/support/message_of.h"

namespace tessera {
namespace {

Tensor counting(const Shape& shape) {
  std::vector<float> values(static_cast<std::size_t>(shape.numel()));
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i);
  return Tensor::from(values, shape);
}

using Floats = std::vector<float>;

TEST(Tensor, RefusesMoreBytesThanCanBeCounted) {
  constexpr std::int64_t kHuge = (std::int64_t{1} << 61) + 1;
  for (const Shape& shape :
       {Shape{kHuge, 8}, Shape{8, kHuge}, Shape{kHuge}, Shape{1 << 30, 1 << 30, 1 << 4}, Shape{kHuge, 8, 0}}) {
    EXPECT_EQ(message_of<ShapeError>([&] { Tensor::empty(shape); }),
              str("tensor: f32 ", shape, " has more bytes than 64 bits can count"));
  }
  EXPECT_NO_THROW(Tensor::empty({kHuge, 0}, DType::u8));
  EXPECT_THROW(Tensor::empty({kHuge}, DType::u8), OutOfMemoryError);
}

TEST(Tensor, OverLentMemoryReadsAndWritesThereAndLeavesItAlone) {
  Floats mine{0, 1, 2, 3, 4, 5};
  const std::size_t in_use = memory_stats(Device::cpu()).in_use;
  {
    const Tensor x = Tensor::lent(mine.data(), {2, 3});
    EXPECT_EQ(x.raw(), mine.data());
    EXPECT_TRUE(x.is_contiguous());
    EXPECT_EQ(x.device(), Device::cpu());
    EXPECT_EQ(memory_stats(Device::cpu()).in_use, in_use) << "it is somebody else's";
    EXPECT_EQ(x.permute({1, 0}).to_vector<float>(), (Floats{0, 3, 1, 4, 2, 5}));
    x.slice(0, 1, 2).fill(9.0);
    EXPECT_FALSE(x.clone().shares_storage(x));
  }
  EXPECT_EQ(memory_stats(Device::cpu()).in_use, in_use);
  EXPECT_EQ(mine, (Floats{0, 1, 2, 9, 9, 9}));
  EXPECT_EQ(Tensor::lent(mine.data() + 1, {2}).to_vector<float>(), (Floats{1, 2}));
}

TEST(Tensor, RefusesLentMemoryThatCannotHoldItsElements) {
  alignas(8) std::array<std::byte, 16> bytes{};
  EXPECT_EQ(message_of<ShapeError>([&] { Tensor::lent(nullptr, {2, 3}); }), "tensor: the lent memory of f32 [2, 3] is null");
  const std::string message = message_of<ShapeError>([&] { Tensor::lent(bytes.data() + 4, {1}, DType::i64); });
  EXPECT_TRUE(message.starts_with("tensor: the lent memory of i64 [1] begins at 0x")) << message;
  EXPECT_TRUE(message.ends_with("; must be aligned to 8 bytes")) << message;
  EXPECT_NO_THROW(Tensor::lent(bytes.data() + 1, {3}, DType::u8));
  EXPECT_NO_THROW(Tensor::lent(nullptr, {0, 3}));
  EXPECT_THROW(Tensor::lent(bytes.data(), {std::int64_t{1} << 61, 8}), ShapeError);
}

TEST(Tensor, ViewsShareStorage) {
  const Tensor x = counting({2, 3});
  EXPECT_EQ(x.permute({1, 0}).to_vector<float>(), (Floats{0, 3, 1, 4, 2, 5}));
  EXPECT_EQ(x.slice(-1, 1, 3).to_vector<float>(), (Floats{1, 2, 4, 5}));
  EXPECT_EQ(x.slice(0, 1, 2).expand({2, 1, 3}).to_vector<float>(), (Floats{3, 4, 5, 3, 4, 5}));
  x.slice(0, 1, 2).fill(9.0);
  EXPECT_EQ(x.to_vector<float>(), (Floats{0, 1, 2, 9, 9, 9}));
  EXPECT_FALSE(x.clone().shares_storage(x));
}

TEST(Tensor, KnowsWhenItIsContiguous) {
  const Tensor x = counting({2, 3, 1});
  EXPECT_TRUE(x.is_contiguous());
  EXPECT_TRUE(x.permute({2, 0, 1}).is_contiguous());
  EXPECT_FALSE(x.permute({1, 0, 2}).is_contiguous());
  EXPECT_TRUE(x.slice(0, 1, 2).is_contiguous());
  EXPECT_FALSE(x.slice(1, 0, 2).is_contiguous());
  EXPECT_TRUE(x.slice(1, 0, 0).is_contiguous());
  EXPECT_TRUE(x.contiguous().shares_storage(x));
}

TEST(Tensor, ReshapesStridedViewsByCopy) {
  const Tensor x = counting({2, 3}).permute({1, 0}).reshape({6});
  EXPECT_EQ(x.to_vector<float>(), (Floats{0, 3, 1, 4, 2, 5}));
}

TEST(Tensor, ConvertsBetweenAllDtypes) {
  const Tensor x = counting({7});
  for (const DType dtype : {DType::f32, DType::bf16, DType::f16, DType::f64, DType::i32, DType::i64, DType::u8}) {
    EXPECT_EQ(x.to(dtype).dtype(), dtype);
    EXPECT_EQ(x.to(dtype).to(DType::f32).to_vector<float>(), x.to_vector<float>()) << dtype;
    EXPECT_EQ(Tensor::full({2}, 3.0, dtype).to(DType::f32).to_vector<float>(), Floats(2, 3.0f)) << dtype;
  }
}

TEST(Tensor, CopiesBetweenLayouts) {
  const Tensor target = Tensor::zeros({3, 2}, DType::f64);
  target.copy_from(counting({2, 3}).permute({1, 0}));
  EXPECT_EQ(target.to_vector<double>(), (std::vector<double>{0, 3, 1, 4, 2, 5}));
}

TEST(Tensor, EmptyTensorsAreLegal) {
  const Tensor x = counting({3, 0});
  EXPECT_EQ(x.to_vector<float>(), Floats());
  EXPECT_EQ(x.permute({1, 0}).shape(), Shape({0, 3}));
  x.fill(1.0);
  EXPECT_EQ(x.clone().numel(), 0);
}

TEST(Tensor, ErrorsNameTheTensor) {
  const Tensor x = counting({2, 3});
  EXPECT_EQ(message_of([&] { x.data<double>(); }), "tensor: data asked as f64, tensor is f32 [2, 3] on cpu");
  EXPECT_EQ(message_of([&] { x.item(); }), "item: tensor is [2, 3]; needs exactly one element");
  EXPECT_EQ(message_of([&] { x.expand({3, 3}); }),
            "expand: shapes do not broadcast: a is [2, 3], b is [3, 3]; sizes must be equal or 1");
  EXPECT_EQ(message_of([&] { x.copy_from(counting({3, 2})); }), "copy_from: source is [3, 2], target is [2, 3]");
  // No machine has this device, so every build refuses it.
  const std::string refusal = message_of<DeviceError>([] { Tensor::empty({2}, DType::f32, Device::cuda(99)); });
  EXPECT_NE(refusal.find("cuda:99"), std::string::npos);
}

}  // namespace
}  // namespace tessera
