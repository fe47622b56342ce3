// Sums of tensors on the GPUs of several ranks. Run by mpirun.
#include <gtest/gtest.h>

#include "core/comm/buckets.h"
#include "core/support/error.h"
#include "tests/core/comm/rank_values.h"
#include "tests/support/gpu.h"
#if TESSERA_HAS_NCCL
#include "core/cuda/comm/nccl_sums.h"
#endif

namespace tessera::testing {
namespace {

class CudaSums : public GpuTest {
 protected:
  template <class T, class Sum>
  static void expect_sums_in_rank_order(const Sum& sum) {
    for (const std::int64_t count : {0, 1, 3, 7, 257, 100003}) {
      const Tensor values = Tensor::from(values_of<T>(ranks().rank(), count), {count}).to(gpu());
      sum(values);
      EXPECT_EQ(values.to_vector<T>(), sums_in_rank_order<T>(count)) << count;
    }
  }
};

TEST_F(CudaSums, ThroughTheHostsAddInTheOrderOfRanks) {
  const auto sum = [](const Tensor& values) { ranks().all_reduce(values); };
  expect_sums_in_rank_order<float>(sum);
  expect_sums_in_rank_order<double>(sum);
}

#if TESSERA_HAS_NCCL
TEST_F(CudaSums, ByNcclAddInTheOrderOfRanks) {
  const std::unique_ptr<GpuSums> sums = nccl_sums([](const std::string& why) { ADD_FAILURE() << why; })(ranks(), gpu());
  if (!sums) GTEST_SKIP() << "ranks share a GPU";
  const auto sum = [&](const Tensor& values) { sums->all_reduce(values, sums->scratch_for(values)); };
  expect_sums_in_rank_order<float>(sum);
  expect_sums_in_rank_order<double>(sum);
}
#endif

// All tensors of a message have the same device and type.
TEST_F(CudaSums, BucketsHoldTensorsOfOneDevice) {
  const auto tensors = [&] {
    std::vector<Tensor> all;
    for (const std::int64_t count : {3, 40, 2, 5, 7}) {
      const Tensor tensor = Tensor::from(values_of<float>(ranks().rank(), count), {count});
      all.push_back(count == 2 ? tensor : tensor.to(gpu()));
    }
    return all;
  };
  for (const std::size_t bytes : {std::size_t{64}, kBucketBytes}) {
    const std::vector<Tensor> summed = tensors();
    all_reduce(ranks(), summed, bytes);
    for (const Tensor& tensor : summed) EXPECT_EQ(tensor.to_vector<float>(), sums_in_rank_order<float>(tensor.numel())) << bytes;
  }
}

}  // namespace
}  // namespace tessera::testing
