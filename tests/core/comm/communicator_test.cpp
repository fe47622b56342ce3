#include "core/comm/communicator.h"

#include <gtest/gtest.h>

#include "core/comm/own_gpu.h"
#include "core/support/error.h"
#include "tests/support/message_of.h"

namespace tessera {
namespace {

TEST(OneProcess, LeavesEverythingAsItIs) {
  Communicator& alone = one_process();
  EXPECT_EQ(alone.rank(), 0);
  EXPECT_EQ(alone.size(), 1);
  const Tensor values = Tensor::from(std::vector<float>{1, 2, 3}, {3});
  alone.all_reduce(values);
  EXPECT_EQ(values.to_vector<float>(), (std::vector<float>{1, 2, 3}));
  std::string bytes = "weights";
  alone.broadcast(bytes);
  EXPECT_EQ(bytes, "weights");
  EXPECT_EQ(alone.all_gather("mine"), std::vector<std::string>{"mine"});
  EXPECT_EQ(alone.any(6), 6u);
  alone.barrier();
}

TEST(OneProcess, TakesWhatRanksWouldTake) {
  const auto refused = [](const Tensor& values) { one_process().all_reduce(values); };
  EXPECT_EQ(message_of<DTypeError>([&] { refused(Tensor::zeros({2}, DType::i64)); }),
            "all_reduce: values are i64 [2] on cpu; must be f32 or f64");
  EXPECT_EQ(message_of<ShapeError>([&] {
              refused(Tensor::zeros({4, 2}).slice(1, 0, 1));
            }),
            "all_reduce: values are f32 [4, 1] on cpu and strided; must be contiguous");
}

TEST(OwnGpu, IsThatOfTheRanksNumberAmongThoseThatItMayHave) {
  EXPECT_EQ(own_gpu(0, std::nullopt, 4), "0");
  EXPECT_EQ(own_gpu(3, std::nullopt, 4), "3");
  EXPECT_EQ(own_gpu(5, std::nullopt, 4), "1") << "ranks beyond the last begin again";
  EXPECT_EQ(own_gpu(1, std::nullopt, 0), std::nullopt) << "no driver";
  EXPECT_EQ(own_gpu(0, "2,GPU-7f", 4), "2");
  EXPECT_EQ(own_gpu(1, "2,GPU-7f", 4), "GPU-7f");
  EXPECT_EQ(own_gpu(2, "2,GPU-7f", 4), "2");
  EXPECT_EQ(own_gpu(1, "", 4).value_or(""), "") << "hidden they stay";
}

}  // namespace
}  // namespace tessera
