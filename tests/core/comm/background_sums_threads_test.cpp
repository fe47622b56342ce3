// Hands tensors to the thread that sums them, under ThreadSanitizer: scripts/test tsan.
#include <gtest/gtest.h>

#include <vector>

#include "core/comm/background_sums.h"
#include "core/ops/arithmetic.h"

namespace tessera {
namespace {

// Sums as if another rank had the same values.
class Twice final : public Communicator {
 public:
  int rank() const noexcept override { return 0; }
  int size() const noexcept override { return 2; }
  void all_reduce(const Tensor& values, std::string_view) override { cpu::affine(values, 2, 0, values); }
  void broadcast(std::string&) override {}
  std::vector<std::string> all_gather(std::string_view bytes) override { return std::vector(2, std::string(bytes)); }
  std::uint64_t any(std::uint64_t flags) override { return flags; }
  void barrier() override {}
  void watch(std::function<void(int rank)>) override {}
  Communicator* beside() override { return this; }
  [[noreturn]] void fail(int, std::string_view why) override { throw InternalError(std::string(why)); }
  [[noreturn]] void end_all(int) override { throw InternalError("ends"); }
};

TEST(BackgroundSumsThreads, ValuesGoToTheThreadAndComeBack) {
  Twice ranks;
  BackgroundSums sums(ranks, 64);
  for (int step = 1; step <= 50; ++step) {
    std::vector<Tensor> tensors;
    for (const std::int64_t count : {4, 9, 40, 3}) {
      tensors.push_back(Tensor::full({count}, step));
      sums.add(tensors.back(), "weight");
    }
    sums.finish();
    for (const Tensor& tensor : tensors) {
      EXPECT_EQ(tensor.to_vector<float>(),
                std::vector<float>(static_cast<std::size_t>(tensor.numel()), 2.0F * static_cast<float>(step)));
      tensor.fill(0);
    }
  }
}

TEST(BackgroundSumsThreads, OneThatIsNotFinishedMayEnd) {
  Twice ranks;
  for (int i = 0; i < 20; ++i) {
    BackgroundSums sums(ranks, 64);
    std::vector<Tensor> tensors;
    for (int k = 0; k < 5; ++k) {
      tensors.push_back(Tensor::full({30}, k));
      sums.add(tensors.back(), "weight");
    }
    sums.finish();
    for (int k = 0; k < 5; ++k) {
      EXPECT_EQ(tensors[static_cast<std::size_t>(k)].to_vector<float>(), std::vector<float>(30, 2.0F * static_cast<float>(k)));
    }
    sums.add(Tensor::full({30}, 1), "weight");  // still waits in its bucket
  }
}

}  // namespace
}  // namespace tessera
