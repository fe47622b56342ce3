// The files in configs/: networks have their published sizes, and every arm of every table passes its check.
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "core/io/vfs.h"
#include "layers/models/model.h"
#include "tests/core/io/temporary_folder.h"
#include "tests/support/scopes.h"
#include "train/experiment.h"
#include "train/reproduce/table_plan.h"

namespace tessera::testing {
namespace {

Cost cost_of(const std::string& file) {
  const VariableScope data("TESSERA_DATA", "/nowhere");
  const Shape image{1, 32, 32, 3};
  ModelConfig model = load_experiment(str(TESSERA_CONFIGS, "/", file)).config.model;
  model.classes = 10;
  return total_cost(*build_model(model, image), image);
}

// Garipov et al. 2016: a network of 557 thousand parameters, 3.23 times fewer with tensor trains. 554,688 are in the
// convolutions, 1,280 in six batch norms and 1,280 in the linear layer.
TEST(ConfigFiles, SixConvolutionsHaveThePublishedSizes) {
  for (const char* length : {"", "_full"}) {
    const Cost dense = cost_of(str("tables/cifar10_garipov/dense", length, ".yaml"));
    const Cost train = cost_of(str("tables/cifar10_garipov/tt", length, ".yaml"));
    EXPECT_EQ(dense.parameters, 557248);
    EXPECT_EQ(train.parameters, 172518);
    EXPECT_EQ(dense.macs, train.macs);
  }
}

// Black images of class 0, as many as CIFAR has. The files are sparse.
void write_images(const std::filesystem::path& folder, const std::vector<std::string>& files, std::uintmax_t records,
                  std::uintmax_t labels) {
  constexpr std::uintmax_t kPixels = 3 * 32 * 32;
  std::filesystem::create_directories(folder);
  for (const std::string& file : files) {
    write_file_atomically(real_vfs(), folder / file, "");
    std::filesystem::resize_file(folder / file, records * (labels + kPixels));
  }
}

// The same in the format of MNIST's files: a header of big-endian numbers, then bytes.
void write_idx(const std::filesystem::path& file, const std::vector<std::uint32_t>& sizes) {
  std::string head("\0\0\x08", 3);
  head += static_cast<char>(sizes.size());
  std::uintmax_t bytes = 1;
  for (const std::uint32_t size : sizes) {
    for (int shift = 24; shift >= 0; shift -= 8) head += static_cast<char>(size >> shift & 0xff);
    bytes *= size;
  }
  std::filesystem::create_directories(file.parent_path());
  write_file_atomically(real_vfs(), file, head);
  std::filesystem::resize_file(file, head.size() + bytes);
}

class TableFiles : public ::testing::Test {
 protected:
  TableFiles() : data_("TESSERA_DATA", folder_.path().string()), cache_("TESSERA_CACHE", "") {
    const std::vector<std::string> batches{"data_batch_1.bin", "data_batch_2.bin", "data_batch_3.bin",
                                           "data_batch_4.bin", "data_batch_5.bin", "test_batch.bin"};
    for (const char* name : {"cifar-10", "cifar-10-jpeg75"}) write_images(folder_ / name, batches, 10000, 1);
    write_images(folder_ / "cifar-100", {"train.bin"}, 50000, 2);
    write_images(folder_ / "cifar-100", {"test.bin"}, 10000, 2);
    const std::filesystem::path fashion = folder_.path() / "fashion-mnist";
    write_idx(fashion / "train-images-idx3-ubyte", {60000, 28, 28});
    write_idx(fashion / "train-labels-idx1-ubyte", {60000});
    write_idx(fashion / "t10k-images-idx3-ubyte", {10000, 28, 28});
    write_idx(fashion / "t10k-labels-idx1-ubyte", {10000});
    std::filesystem::create_directories(folder_ / "tinyshakespeare");
    write_file_atomically(real_vfs(), folder_ / "tinyshakespeare/input.txt", std::string(1115394, 'a'));
  }

  TemporaryFolder folder_;
  VariableScope data_, cache_;
};

// This finds ranks that a network does not have, layers that no pattern matches, and misspelt keys.
TEST_F(TableFiles, EveryArmPassesItsCheck) {
  std::size_t tables = 0;
  for (const auto& entry : std::filesystem::directory_iterator(TESSERA_CONFIGS "/tables")) {
    if (entry.path().extension() != ".yaml") continue;
    SCOPED_TRACE(entry.path().filename());
    ReproduceOptions options;
    options.runs = folder_ / "runs";
    options.results = folder_ / "results";
    const TablePlan plan(real_vfs(), entry.path().string(), options);
    EXPECT_NO_THROW(plan.check(plan.pending()));
    ++tables;
  }
  EXPECT_GE(tables, 4u);
}

// If a new version wrote a new key into every experiment, the committed results would no longer match their cells.
TEST_F(TableFiles, CommittedResultsAreThoseOfTheirCells) {
  ReproduceOptions options;
  options.runs = folder_ / "runs";
  const TablePlan plan(real_vfs(), TESSERA_CONFIGS "/tables/admm_resnet8.yaml", options);
  EXPECT_TRUE(plan.pending().empty());
  EXPECT_EQ(plan.view().cells, plan.view().wanted);
}

}  // namespace
}  // namespace tessera::testing
