// Run by mpirun with several ranks. Each rank runs every case.
#include "core/comm/background_sums.h"

#include <gtest/gtest.h>

#include "core/rng.h"
#include "core/support/error.h"
#include "tests/core/comm/forwarding.h"
#include "tests/support/message_of.h"

namespace tessera {
namespace {

// Ranks whose MPI serves only one thread.
class OneThread final : public Forwarding {
 public:
  void all_reduce(const Tensor& values, std::string_view name) override {
    ++sums;
    ranks().all_reduce(values, name);
  }
  Communicator* beside() override { return nullptr; }

  int sums = 0;
};

constexpr std::size_t kBytes = 4096;

// Tensors of 12 bytes to 16 kB, in f32 and f64.
std::vector<Tensor> tensors_of_rank() {
  std::vector<Tensor> tensors;
  for (const std::int64_t count : {3, 400, 4000, 700, 650, 1, 5}) {
    const Tensor tensor = Tensor::empty({count});
    const RngStream stream(static_cast<std::uint64_t>(ranks().rank() + 10 * static_cast<int>(tensors.size())), "test", "sums");
    fill_normal(tensor, stream, 0, 1);
    tensors.push_back(count == 5 ? tensor.to(DType::f64) : tensor);
  }
  return tensors;
}

std::vector<std::vector<double>> values_of(const std::vector<Tensor>& tensors) {
  std::vector<std::vector<double>> values;
  for (const Tensor& tensor : tensors) values.push_back(tensor.to(DType::f64).to_vector<double>());
  return values;
}

std::vector<std::vector<double>> expected_sums() {
  const std::vector<Tensor> tensors = tensors_of_rank();
  for (const Tensor& tensor : tensors) ranks().all_reduce(tensor);
  return values_of(tensors);
}

// Meanwhile this thread calls the other ranks too.
TEST(BackgroundSums, GiveTheBytesOfSumsOneByOne) {
  const std::vector<std::vector<double>> expected = expected_sums();
  BackgroundSums sums(ranks(), kBytes);
  for (int step = 0; step < 20; ++step) {
    const std::vector<Tensor> tensors = tensors_of_rank();
    for (const Tensor& tensor : tensors) {
      sums.add(tensor, "weight");
      EXPECT_EQ(ranks().any(1), 1u);
    }
    sums.finish();
    ASSERT_EQ(values_of(tensors), expected) << step;
  }
  sums.finish();  // nothing is pending
}

TEST(BackgroundSums, AreThoseOfOneThreadWhereMpiServesNoOther) {
  const std::vector<std::vector<double>> expected = expected_sums();
  OneThread one;
  BackgroundSums sums(one, kBytes);
  const std::vector<Tensor> tensors = tensors_of_rank();
  for (const Tensor& tensor : tensors) sums.add(tensor, "weight");
  EXPECT_GT(one.sums, 0) << "full buckets";
  sums.finish();
  EXPECT_EQ(values_of(tensors), expected);
}

TEST(BackgroundSums, WhatASumHasComeToIsThrown) {
  BackgroundSums sums(ranks(), kBytes);
  EXPECT_NE(message_of<ShapeError>([&] {
              sums.add(Tensor::zeros({4, 2}).slice(1, 0, 1), "strided");
            }).find("strided"),
            std::string::npos);
  sums.add(Tensor::zeros({3}), ranks().rank() == 1 ? "fc.bias" : "fc.weight");
  const std::string told = message_of<InternalError>([&] { sums.finish(); });
  EXPECT_NE(told.find("rank 1: all_reduce of f32 [3] on cpu fc.bias"), std::string::npos) << told;
}

}  // namespace
}  // namespace tessera
