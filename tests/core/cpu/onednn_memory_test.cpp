// oneDNN may allocate its own buffers when a primitive runs. If there is no memory for them, the op must fail like any other that
// ran out of memory, and a clock must skip the candidate.
#include <dlfcn.h>
#include <dnnl.h>
#include <gtest/gtest.h>

#include <span>

#include "core/device/decisions.h"
#include "core/ops/conv2d.h"
#include "tests/support/message_of.h"

namespace {

dnnl_status_t planted = dnnl_success;  // the status that failing executions return
int executions_that_run = 0;  // executions that still run before one fails
const void* image = nullptr;  // if set, only executions that reorder this image fail

bool reorders_the_image(int count, const dnnl_exec_arg_t* arguments) {
  if (count != 2) return false;  // a reorder has only a source and a target
  for (const dnnl_exec_arg_t& argument : std::span(arguments, 2)) {
    void* data = nullptr;
    const bool known = dnnl_memory_get_data_handle(argument.memory, &data) == dnnl_success;
    if (known && argument.arg == DNNL_ARG_FROM && data == image) return true;
  }
  return false;
}

}  // namespace

// Replaces the library's function in this program.
dnnl_status_t dnnl_primitive_execute(const_dnnl_primitive_t primitive, dnnl_stream_t stream, int count,
                                     const dnnl_exec_arg_t* arguments) {
  static const auto library = reinterpret_cast<decltype(&dnnl_primitive_execute)>(dlsym(RTLD_NEXT, "dnnl_primitive_execute"));
  const bool meant = planted != dnnl_success && (image == nullptr || reorders_the_image(count, arguments));
  if (meant && executions_that_run-- <= 0) return planted;
  return library(primitive, stream, count, arguments);
}

namespace tessera {
namespace {

// Large enough for a choice of algorithm.
void convolve(const Tensor& x) {
  const Tensor y = Tensor::empty({2, 19, 23, 48});
  cpu::conv2d_forward(x, Tensor::zeros({48, 3, 3, 40}), {}, y, {.padding = {1, 1}});
}

class OnednnMemory : public testing::Test {
 protected:
  ~OnednnMemory() override {
    planted = dnnl_success;
    executions_that_run = 0;
    image = nullptr;
  }

  const Tensor x_ = Tensor::zeros({2, 19, 23, 40});
};

TEST_F(OnednnMemory, APrimitiveWithoutRoomIsOutOfMemory) {
  const DecisionScope scope({.forced = "nhwc"});
  for (int runs = 0; runs < 2; ++runs) {  // fails the weight's reorder, then the convolution, if there are both
    planted = dnnl_out_of_memory;
    executions_that_run = runs;
    const std::string message = message_of<OutOfMemoryError>([&] { convolve(x_); });
    EXPECT_TRUE(message.starts_with("cpu: out of memory: could not execute a primitive: ")) << message;
    EXPECT_NE(message.find(" bytes in use, the system has no more"), std::string::npos) << message;
  }
}

TEST_F(OnednnMemory, AnotherStatusIsOurBug) {
  planted = dnnl_invalid_arguments;
  const DecisionScope scope({.forced = "nhwc"});
  EXPECT_EQ(message_of<InternalError>([&] { convolve(x_); }), "onednn: could not execute a primitive: ends with status 2");
}

// The first candidate takes images in their own layout, without a reorder.
TEST_F(OnednnMemory, AClockPassesOverCandidatesThatReorderImages) {
  planted = dnnl_out_of_memory;
  image = x_.raw();
  const DecisionScope scope({.measure = true});
  convolve(x_);
  ASSERT_EQ(scope.taken().size(), 1u);
  const std::string& choice = scope.taken().begin()->second;
  EXPECT_TRUE(choice == "nhwc" || choice == "winograd_nhwc") << choice;
  EXPECT_LT(executions_that_run, 0) << "some candidate reorders them";
}

}  // namespace
}  // namespace tessera
