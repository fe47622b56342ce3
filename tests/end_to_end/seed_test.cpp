// On data that does not depend on the seed, the seed still draws four things: the weights, the order of the samples, their
// augmentation and the dropout. Each is tested alone. At a learning rate of 0 the linear layer keeps its initial weights. The
// batch norm's running statistics do not depend on these. They show what the input was: nothing random if all images are equal
// and neither augmented nor dropped.
#include <gtest/gtest.h>

#include "core/io/safetensors.h"
#include "core/support/error.h"
#include "tests/end_to_end/program.h"

namespace tessera::testing {
namespace {

constexpr const char* kExperiment = R"(
version: 1
name: seeds
threads: {compute: 1, loader: 0}
data: {name: mnist, root: data, batch: 16, val: 0, mean: [0], std: [1]}
model:
  name: layers
  layers: [{dropout: {p: 0, name: drop}}, {batch_norm: {name: bn}}, flatten, {linear: {out: 10, name: fc}}]
optimizer: {name: sgd, lr: 0}
stages: [{name: only, train: 3s}]
)";

constexpr int kImages = 64;
constexpr int kSide = 28;
constexpr const char* kStatistics = "bn.running_mean";

std::string big_endian(std::initializer_list<std::uint32_t> numbers) {
  std::string bytes;
  for (const std::uint32_t number : numbers) {
    for (const int shift : {24, 16, 8, 0}) bytes += static_cast<char>(number >> shift & 255u);
  }
  return bytes;
}

enum class Images { equal, different };

class Seed : public ::testing::Test {
 protected:
  void write_data(Images images) const {
    std::string pixels = big_endian({0x803, kImages, kSide, kSide});
    std::string labels = big_endian({0x801, kImages});
    for (int i = 0; i < kImages; ++i) {
      labels += static_cast<char>(i % 10);
      for (int pixel = 0; pixel < kSide * kSide; ++pixel) {
        pixels += static_cast<char>(pixel % kSide * 4 + (images == Images::different ? i : 0));
      }
    }
    std::filesystem::create_directories(folder_.path() / "data");
    for (const char* split : {"train", "t10k"}) {
      write_bytes(folder_ / str("data/", split, "-images-idx3-ubyte"), pixels);
      write_bytes(folder_ / str("data/", split, "-labels-idx1-ubyte"), labels);
    }
  }

  // The bytes of a tensor of the trained network.
  std::string trained(const std::string& tensor, const std::string& seed, const std::string& change = "log_every=1") const {
    write_bytes(folder_ / "seeds.yaml", kExperiment);
    const std::string runs = folder_ / str("runs", ++runs_);
    const Outcome outcome = run_program({"train", folder_ / "seeds.yaml", "--runs", runs, "seed=" + seed, change});
    EXPECT_EQ(outcome.exit_code, 0) << outcome.output;
    const std::string file = runs + "/seeds/1/checkpoints/step-00000003/model.safetensors";
    const Tensor values = decode_safetensors(read_bytes(file), file).tensors.at(tensor);
    const std::string bytes(reinterpret_cast<const char*>(values.data<float>()), values.bytes());
    EXPECT_NE(bytes.find_first_not_of('\0'), std::string::npos) << tensor << " is zero: nothing was trained";
    return bytes;
  }

  TemporaryFolder folder_;
  mutable int runs_ = 0;
};

TEST_F(Seed, DrawsTheWeights) {
  write_data(Images::equal);
  const std::string weights = trained("fc.weight", "3");
  EXPECT_TRUE(weights == trained("fc.weight", "3"));
  EXPECT_FALSE(weights == trained("fc.weight", "4"));
}

TEST_F(Seed, DrawsNothingElseOfEqualImages) {
  write_data(Images::equal);
  EXPECT_TRUE(trained(kStatistics, "3") == trained(kStatistics, "4"));
}

TEST_F(Seed, DrawsTheOrderOfTheSamples) {
  write_data(Images::different);
  const std::string statistics = trained(kStatistics, "3");
  EXPECT_TRUE(statistics == trained(kStatistics, "3"));
  EXPECT_FALSE(statistics == trained(kStatistics, "4"));
}

TEST_F(Seed, DrawsTheAugmentation) {
  write_data(Images::equal);
  const std::string change = "data.augment=[{pad_crop: 4}]";
  const std::string statistics = trained(kStatistics, "3", change);
  EXPECT_TRUE(statistics == trained(kStatistics, "3", change));
  EXPECT_FALSE(statistics == trained(kStatistics, "4", change));
}

TEST_F(Seed, DrawsTheDropout) {
  write_data(Images::equal);
  const std::string change = "model.layers[0].dropout.p=0.5";
  const std::string statistics = trained(kStatistics, "3", change);
  EXPECT_TRUE(statistics == trained(kStatistics, "3", change));
  EXPECT_FALSE(statistics == trained(kStatistics, "4", change));
}

}  // namespace
}  // namespace tessera::testing
