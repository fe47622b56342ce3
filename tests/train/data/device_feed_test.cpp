#include "train/data/device_feed.h"

#include <gtest/gtest.h>

#include <deque>

#include "core/support/error.h"
#include "train/data/glyphs.h"
#include "train/data/labelled_images.h"
#include "train/data/loader.h"

namespace tessera {
namespace {

// A staging ring with the contract of a GPU's ring. The host plays the device.
class HostRing final : public StagingRing {
 public:
  explicit HostRing(int slots) : slots_(slots) {}

  void push(std::span<const Tensor> batch) override {
    ASSERT_LT(in_use_ + waiting_.size(), static_cast<std::size_t>(slots_));
    std::vector<Tensor> copies;
    for (const Tensor& tensor : batch) copies.push_back(tensor.clone());
    waiting_.push_back(std::move(copies));
  }
  std::vector<Tensor> take() override {
    EXPECT_FALSE(waiting_.empty());
    std::vector<Tensor> batch = std::move(waiting_.front());
    waiting_.pop_front();
    in_use_ = 1;
    return batch;
  }
  void drop() override { waiting_.clear(); }
  int slots() const noexcept override { return slots_; }

 private:
  int slots_;
  std::size_t in_use_ = 0;
  std::deque<std::vector<Tensor>> waiting_;
};

Batch numbered(std::int64_t number) {
  return {{"image", Tensor::full({2, 1}, static_cast<double>(number))}, {"label", Tensor::full({2}, 0, DType::i64)}};
}

class DeviceFeedTest : public ::testing::Test {
 protected:
  double next() { return static_cast<double>(feed_.next().at("image").data<float>()[0]); }

  std::int64_t made_ = 0;
  std::int64_t bad_ = -1;
  DeviceFeed feed_{std::make_unique<HostRing>(DeviceFeed::kSlots), [this] {
                     if (made_ == bad_) throw IoError("image 7 is damaged");
                     return numbered(made_++);
                   }};
};

TEST_F(DeviceFeedTest, GivesBatchesInOrderAndSendsOneAhead) {
  EXPECT_EQ(made_, 0);
  for (int i = 0; i < 5; ++i) {
    EXPECT_EQ(next(), i);
    EXPECT_EQ(made_, i + 2);
  }
}

TEST_F(DeviceFeedTest, AFailureComesWithItsOwnBatchAndStays) {
  bad_ = 2;
  EXPECT_EQ(next(), 0);
  EXPECT_EQ(next(), 1);
  EXPECT_THROW(next(), IoError);
  EXPECT_THROW(next(), IoError);
  bad_ = -1;
  EXPECT_EQ(next(), 2);
}

TEST_F(DeviceFeedTest, AfterARestartNothingOfThePastIsGiven) {
  next();
  made_ = 40;
  feed_.restart();
  EXPECT_EQ(next(), 40);
  EXPECT_EQ(next(), 41);
  bad_ = made_;
  next();
  made_ = 7;
  feed_.restart();
  EXPECT_EQ(next(), 7);
}

// On the CPU a batch is passed through as it was assembled: one owner, no copy.
TEST(LoaderOnTheCpu, BatchesPassThroughUntouched) {
  for (const int threads : {0, 2}) {
    const auto images = std::make_shared<MemoryDataset>(make_glyphs(5, "train", 20));
    Loader loader(all_of(std::make_shared<LabelledImages>(images, Normalization{{0.0}, {1.0}})),
                  evaluation_options(5, threads, Device::cpu()));
    const Batch batch = loader.next();
    EXPECT_TRUE(batch.at("image").device().is_cpu());
    EXPECT_TRUE(batch.at("image").sole_owner());
    EXPECT_TRUE(batch.at("label").sole_owner());
  }
}

}  // namespace
}  // namespace tessera
