#include "core/cpu/parallel_tensors.h"

#include <gtest/gtest.h>
#include <omp.h>

#include <mutex>

namespace tessera {
namespace {

using cpu::parallel_tensors;

const Tensor& itself(const Tensor& tensor) { return tensor; }

TEST(ParallelTensors, VisitsEveryElementOnceInOneRegion) {
  const int before = omp_get_max_threads();
  for (const int threads : {1, 2, 5}) {
    omp_set_num_threads(threads);
    std::vector<Tensor> tensors;
    for (const std::int64_t size : {0, 7, 0, 0, 1, 50, 3, 0, 29, 10, 0}) tensors.push_back(Tensor::zeros({size}));
    std::mutex mutex;
    std::vector<std::int64_t> share(static_cast<std::size_t>(threads));
    parallel_tensors(std::span<const Tensor>(tensors), 1, itself, [&](std::size_t i, std::int64_t begin, std::int64_t end) {
      ASSERT_LT(begin, end);
      ASSERT_LE(end, tensors[i].numel());
      const std::lock_guard lock(mutex);
      for (std::int64_t at = begin; at < end; ++at) tensors[i].data<float>()[at] += 1;
      share[static_cast<std::size_t>(omp_get_thread_num())] += end - begin;
    });
    for (const Tensor& tensor : tensors) {
      EXPECT_EQ(tensor.to_vector<float>(), std::vector<float>(static_cast<std::size_t>(tensor.numel()), 1.0f));
    }
    for (const std::int64_t elements : share) EXPECT_EQ(elements, 100 / threads) << "shares are equal";
  }
  omp_set_num_threads(before);
}

TEST(ParallelTensors, OfNoneIsNothing) {
  const std::vector<Tensor> tensors{Tensor::zeros({0})};
  const auto fail = [](std::size_t, std::int64_t, std::int64_t) { FAIL(); };
  parallel_tensors(std::span<const Tensor>(tensors), 1, itself, fail);
  parallel_tensors(std::span<const Tensor>(), 1, itself, fail);
}

}  // namespace
}  // namespace tessera
