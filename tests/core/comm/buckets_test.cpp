#include "core/comm/buckets.h"

#include <gtest/gtest.h>

#include "core/rng.h"
#include "core/support/error.h"
#include "tests/core/comm/forwarding.h"
#include "tests/support/message_of.h"

namespace tessera {
namespace {

// Counts the messages.
class Counting final : public Forwarding {
 public:
  void all_reduce(const Tensor& values, std::string_view name) override {
    sizes.push_back(values.numel());
    ranks().all_reduce(values, name);
  }

  std::vector<std::int64_t> sizes;
};

std::vector<Tensor> tensors_of_rank() {
  std::vector<Tensor> tensors;
  for (const std::int64_t count : {3, 4, 100, 2, 1, 5}) {
    const Tensor tensor = Tensor::empty({count});
    const RngStream stream(static_cast<std::uint64_t>(ranks().rank() + 10 * static_cast<int>(tensors.size())), "test", "buckets");
    fill_normal(tensor, stream, 0, 1);
    tensors.push_back(count == 5 ? tensor.to(DType::f64) : tensor);
  }
  return tensors;
}

std::vector<double> all_of_them(const std::vector<Tensor>& tensors) {
  std::vector<double> all;
  for (const Tensor& tensor : tensors) {
    for (const double value : tensor.to(DType::f64).to_vector<double>()) all.push_back(value);
  }
  return all;
}

TEST(Buckets, GiveTheBytesOfSumsOneByOne) {
  const std::vector<Tensor> expected = tensors_of_rank();
  for (const Tensor& tensor : expected) ranks().all_reduce(tensor);
  for (const std::size_t bytes : {std::size_t{1}, std::size_t{32}, kBucketBytes}) {
    const std::vector<Tensor> tensors = tensors_of_rank();
    all_reduce(ranks(), tensors, bytes);
    EXPECT_EQ(all_of_them(tensors), all_of_them(expected)) << bytes;
  }
}

// A message holds up to 32 bytes of one type. A larger tensor is sent alone, in pieces.
TEST(Buckets, HoldTensorsOfOneTypeUpToTheirSize) {
  Counting counting;
  all_reduce(counting, tensors_of_rank(), 32);
  std::vector<std::int64_t> expected{7};
  expected.insert(expected.end(), 12, 8);  // most of the tensor of 100
  expected.insert(expected.end(), {4, 3, 4, 1});  // the rest of it, then 2 + 1, then 5 in f64 as 4 and 1
  EXPECT_EQ(counting.sizes, expected);
  counting.sizes.clear();
  all_reduce(counting, {});
  EXPECT_TRUE(counting.sizes.empty());
}

TEST(Buckets, RefuseWhatASumRefuses) {
  const std::vector<Tensor> strided{Tensor::zeros({3}), Tensor::zeros({4, 2}).slice(1, 0, 1)};
  EXPECT_NE(message_of<ShapeError>([&] { all_reduce(ranks(), strided); }).find("strided"), std::string::npos);
}

}  // namespace
}  // namespace tessera
