// Exported networks pass ONNX's own checker and give our outputs in ONNX Runtime. The Python side is
// tests/oracle/onnx_models.py.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <sstream>

#include "core/autograd/var.h"
#include "layers/scores.h"
#include "tests/core/io/temporary_folder.h"
#include "tests/support/python.h"
#include "tests/train/onnx/onnx_networks.h"
#include "tests/train/run/weights_files.h"
#include "train/onnx/encode.h"
#include "train/report/export_onnx.h"

namespace tessera {
namespace {

// Both sides compute in single precision. Relative to the largest output.
constexpr double kTolerance = 1e-4;

class OnnxOracle : public ::testing::Test {
 protected:
  void SetUp() override {
    const char* const first = std::getenv("TESSERA_ONNX_PYTHON");
    first_ = first != nullptr ? first : "";
  }

  // Returns "" if no Python has the packages.
  std::string python_with(const std::string& packages) const { return testing::python_with(packages + ", numpy", first_); }

  std::string told_by(const std::string& python, const std::string& action) const {
    return testing::output_of(python + " " TESSERA_ORACLE_FOLDER "/onnx_models.py " + action + " " + folder_.path().string() +
                              " 2>&1");
  }

  // Writes NAME.onnx, and NAME.safetensors with the outputs for one sample and for three. Text networks add other lengths.
  void write(const std::string& name, Module& model, const Shape& input, const OnnxOptions& options = {}) const {
    export_onnx(real_vfs(), model, input, {}, folder_.path() / (name + ".onnx"), options);
    SafetensorsFile file;
    for (const std::int64_t batch : {1, 3}) add(file, str(batch), model, {{"x", testing::onnx_samples(model, input, batch)}});
    if (takes_any_length(model, input)) {
      for (const std::int64_t length : {std::int64_t{3}, longest(model)}) {
        add(file, str("length", length), model, {{"x", testing::onnx_samples(model, {1, length}, 2)}});
      }
    }
    if (name.starts_with("bert")) {
      std::vector<std::int64_t> lengths{input[1]};
      if (takes_any_length(model, input)) lengths.push_back(7);
      for (const std::int64_t length : lengths) {
        const Tensor mask = Tensor::full({3, length}, 1, DType::u8);
        mask.slice(0, 1, 2).slice(1, 4, length).fill(0);
        mask.slice(0, 2, 3).fill(0);  // a sample that attends to nothing
        add(file, str("padded", length), model, {{"x", testing::onnx_samples(model, {1, length}, 3)}, {"key_mask", mask}});
      }
      EXPECT_GT(largest_difference(file.tensors.at(str("y.padded", input[1])), file.tensors.at("y.3")), 0.1)
          << "a mask that is not seen proves nothing";
    }
    testing::save(folder_.path() / (name + ".safetensors"), file);
  }

  static bool takes_any_length(Module& model, const Shape& input) {
    const std::vector<OnnxSize> sizes = onnx_graph(model, input).inputs.front().sizes;
    return std::holds_alternative<std::string>(sizes[1]);
  }

  // The longest sequence the network reads. 300 if it has no limit: more than the 256 positions of one table of rotary angles.
  static std::int64_t longest(Module& model) {
    std::int64_t limit = 0;
    for_each_module(model, [&](const Module& module) { limit = std::max(limit, module.sequence_limit()); });
    return limit > 0 ? limit : 300;
  }

  static void add(SafetensorsFile& file, const std::string& batch, Module& model, const std::vector<NamedTensor>& parts) {
    const NoGrad no_grad;
    file.tensors["x." + batch] = parts[0].tensor;
    if (parts.size() > 1) file.tensors["mask." + batch] = parts[1].tensor;
    file.tensors["y." + batch] = scores(model, parts, {}, DType::f32).value().contiguous();
  }

  static double largest_difference(const Tensor& a, const Tensor& b) {
    const std::vector<float> left = a.to_vector<float>(), right = b.to_vector<float>();
    double largest = 0;
    for (std::size_t i = 0; i < left.size(); ++i) largest = std::max(largest, std::abs(double{left[i]} - double{right[i]}));
    return largest;
  }

  void write_all() const {
    for (const testing::OnnxNetwork& network : testing::onnx_networks()) write(network.name, *network.make(), network.input);
    for (const char* const name : {"resnet", "svd_with_norms", "tt_conv"}) {
      write(str(name, "_unfolded"), *testing::onnx_network(name), testing::onnx_input(name), {.keep_batch_norm = true});
    }
  }

  TemporaryFolder folder_;
  std::string first_;
};

TEST_F(OnnxOracle, PythonsCheckerTakesEveryModel) {
  const std::string python = python_with("onnx");
  if (python.empty()) GTEST_SKIP() << "python3 with onnx is not installed";
  write_all();
  const std::string told = told_by(python, "check");
  std::istringstream lines(told);
  std::size_t models = 0;
  for (std::string line; std::getline(lines, line); ++models) {
    EXPECT_NE(line.find(" ir 7 opset :13 tessera tessera."), std::string::npos) << line;
    EXPECT_NE(line.find("tessera.version"), std::string::npos) << line;
  }
  EXPECT_EQ(models, testing::onnx_networks().size() + 3);
}

TEST_F(OnnxOracle, OnnxRuntimeGivesOurAnswers) {
  const std::string python = python_with("onnxruntime");
  if (python.empty()) GTEST_SKIP() << "python3 with onnxruntime is not installed";
  write_all();
  const std::string told = told_by(python, "run");
  std::istringstream lines(told);
  std::size_t answers = 0;
  for (std::string line; std::getline(lines, line); ++answers) {
    std::istringstream words(line);
    std::string name, batch;
    double difference = 1, largest = 0;
    ASSERT_TRUE(words >> name >> batch >> difference >> largest) << line << "\n" << told;
    EXPECT_LE(difference, kTolerance) << line;
    EXPECT_GT(largest, 0.01) << line << ": answers near zero prove nothing";
  }
  const auto texts = std::ranges::count_if(testing::onnx_networks(), [](const testing::OnnxNetwork& network) {
    return network.input.rank() == 2 && takes_any_length(*network.make(), network.input);
  });
  EXPECT_EQ(texts, 7);
  const std::size_t others = 2 * static_cast<std::size_t>(texts) + 3;  // lengths; padded: bert 2, bert_sparse 1
  EXPECT_EQ(answers, 2 * (testing::onnx_networks().size() + 3) + others);
}

}  // namespace
}  // namespace tessera
