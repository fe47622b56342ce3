// What tessera_run() and tessera_output_shape() refuse, and with which messages.
#include <gtest/gtest.h>

#include "tests/capi/networks.h"

namespace tessera::capi::testing {
namespace {

class CArguments : public ::testing::Test {
 protected:
  // The message of a refused run, which must write nothing.
  std::string refusal(const tessera_tensor* inputs, std::int32_t input_count, const tessera_tensor* outputs,
                      std::int32_t output_count) {
    EXPECT_EQ(tessera_run(network_.get(), inputs, input_count, outputs, output_count), TESSERA_BAD_ARGUMENT);
    EXPECT_EQ(scores_.values, std::vector<float>(20, -1));
    return tessera_last_error();
  }
  std::string refused_input(const tessera_tensor& input) {
    const tessera_tensor output = scores_.tensor();
    std::int64_t shape[TESSERA_MOST_AXES];
    std::int32_t rank = -1;
    const std::string message = refusal(&input, 1, &output, 1);
    if (input.data != nullptr) {
      EXPECT_EQ(tessera_output_shape(network_.get(), &input, 1, shape, &rank), TESSERA_BAD_ARGUMENT);
      EXPECT_EQ(rank, -1);
    }
    return message;
  }
  std::string refused_output(const tessera_tensor& output) {
    const tessera_tensor input = images_.tensor();
    return refusal(&input, 1, &output, 1);
  }

  Loaded network_{dense_run()};
  Buffer<float> images_ = some_images(2);
  Buffer<float> scores_{{2, 10}, -1};
};

TEST_F(CArguments, AnInputOfAnotherShape) {
  const std::string needs = "; needs float32 or uint8 [batch, 28, 28, 1]";
  for (const auto& [shape, text] :
       std::vector<std::pair<std::vector<std::int64_t>, std::string>>{{{2, 1, 28, 28}, "[2, 1, 28, 28]"},
                                                                      {{28, 28, 1}, "[28, 28, 1]"},
                                                                      {{2, 784}, "[2, 784]"},
                                                                      {{2, 28, 28, 2}, "[2, 28, 28, 2]"}}) {
    Buffer<float> images(shape, 0);
    EXPECT_EQ(refused_input(images.tensor()), "tessera_run: input 'image' is float32 " + text + needs);
  }
  tessera_tensor input = images_.tensor();
  for (const std::int64_t batch : {0, -1}) {
    images_.shape[0] = batch;
    EXPECT_EQ(refused_input(input), str("tessera_run: input 'image': size 0 of its shape is ", batch, "; must be 1 or more"));
  }
  images_.shape[0] = std::int64_t{1} << 40;
  EXPECT_EQ(refused_input(input), "tessera_run: input 'image': its shape has more than 2^40 elements");
  for (const std::int32_t rank : {-1, 0, 9}) {
    input.rank = rank;
    EXPECT_EQ(refused_input(input), str("tessera_run: input 'image' has the rank ", rank, "; must be 1 to 8"));
  }
}

TEST_F(CArguments, AnInputOfAnotherDtype) {
  Buffer<std::int64_t> numbers({2, 28, 28, 1}, 0);
  EXPECT_EQ(refused_input(numbers.tensor()),
            "tessera_run: input 'image' is int64 [2, 28, 28, 1]; needs float32 or uint8 [batch, 28, 28, 1]");
  tessera_tensor input = images_.tensor();
  input.dtype = 7;
  EXPECT_EQ(refused_input(input),
            "tessera_run: input 'image' has the dtype 7; needs TESSERA_FLOAT32, TESSERA_INT64 or TESSERA_UINT8");
}

TEST_F(CArguments, NullsAndMemoryOffAnElement) {
  tessera_tensor input = images_.tensor();
  const tessera_tensor output = scores_.tensor();
  EXPECT_EQ(refusal(nullptr, 1, &output, 1), "tessera_run: inputs is null, input_count is 1");
  EXPECT_EQ(refusal(&input, 1, nullptr, 1), "tessera_run: outputs is null, output_count is 1");
  EXPECT_EQ(tessera_run(nullptr, &input, 1, &output, 1), TESSERA_BAD_ARGUMENT);
  EXPECT_STREQ(tessera_last_error(), "tessera_run: network is null");
  input.data = nullptr;
  EXPECT_EQ(refused_input(input), "tessera_run: input 'image': its data is null");
  input.data = reinterpret_cast<char*>(images_.values.data()) + 1;
  const std::string off = refusal(&input, 1, &output, 1);
  EXPECT_TRUE(off.ends_with("; must be aligned to 4 bytes")) << off;
  input.shape = nullptr;
  EXPECT_EQ(refused_input(input), "tessera_run: input 'image': its shape is null");
}

TEST_F(CArguments, NamesAndNumbersOfInputs) {
  tessera_tensor input = images_.tensor();
  const tessera_tensor output = scores_.tensor();
  input.name = "tokens";
  EXPECT_EQ(refused_input(input), "tessera_run: input 0 is called 'tokens'; the network has image");
  input.name = "image";
  EXPECT_EQ(refusal(&input, 0, &output, 1), "tessera_run: input_count is 0; the network has image");
  EXPECT_EQ(refusal(&input, 2, &output, 1), "tessera_run: input_count is 2; the network has image");
  EXPECT_EQ(tessera_run(network_.get(), &input, 1, &output, 1), TESSERA_OK) << tessera_last_error();
}

TEST_F(CArguments, AnOutputThatDoesNotFit) {
  Buffer<float> wide({2, 11}, 0);
  EXPECT_EQ(refused_output(wide.tensor()),
            "tessera_run: output 'scores' is [2, 11]; the network writes [2, 10] for 'image' [2, 28, 28, 1]");
  Buffer<std::int64_t> numbers({2, 10}, 0);
  EXPECT_EQ(refused_output(numbers.tensor()), "tessera_run: output 'scores' is int64 [2, 10]; needs float32");
  tessera_tensor output = scores_.tensor();
  output.name = "answer";
  EXPECT_EQ(refused_output(output), "tessera_run: output 0 is called 'answer'; the network has scores");
  output.name = "scores";
  output.data = nullptr;
  EXPECT_EQ(refused_output(output), "tessera_run: output 'scores': its data is null");
  const tessera_tensor input = images_.tensor();
  const std::vector<tessera_tensor> two(2, scores_.tensor());
  EXPECT_EQ(refusal(&input, 1, two.data(), 2), "tessera_run: output_count is 2; the network has one, scores");
}

TEST_F(CArguments, OfTheShapeOfAnOutput) {
  const tessera_tensor input = images_.tensor();
  std::int64_t shape[TESSERA_MOST_AXES];
  std::int32_t rank = 0;
  EXPECT_EQ(tessera_output_shape(network_.get(), &input, 1, nullptr, &rank), TESSERA_BAD_ARGUMENT);
  EXPECT_STREQ(tessera_last_error(), "tessera_output_shape: shape is null");
  EXPECT_EQ(tessera_output_shape(network_.get(), &input, 1, shape, nullptr), TESSERA_BAD_ARGUMENT);
  EXPECT_STREQ(tessera_last_error(), "tessera_output_shape: rank is null");
  ASSERT_EQ(tessera_output_shape(network_.get(), &input, 1, shape, &rank), TESSERA_OK) << tessera_last_error();
  EXPECT_EQ(std::vector(shape, shape + rank), (std::vector<std::int64_t>{2, 10}));
}

TEST_F(CArguments, AnErrorStandsUntilTheNext) {
  tessera_tensor input = images_.tensor();
  input.rank = 0;
  const std::string message = refused_input(input);
  const tessera_tensor good = images_.tensor(), output = scores_.tensor();
  ASSERT_EQ(tessera_run(network_.get(), &good, 1, &output, 1), TESSERA_OK);
  EXPECT_EQ(tessera_last_error(), "tessera_output_shape" + message.substr(message.find(':'))) << "the last that failed";
}

}  // namespace
}  // namespace tessera::capi::testing
