// oneDNN's sgemm packs operands into its own buffers. If there is no memory for them, the step must fail like any other that ran
// out of memory, and a clock must skip the candidate.
#include <dlfcn.h>
#include <dnnl.h>
#include <gtest/gtest.h>

#include "core/device/decisions.h"
#include "core/ops/matmul.h"
#include "core/ops/matmul_plan_cpu.h"
#include "tests/support/message_of.h"

namespace {
dnnl_status_t planted = dnnl_success;  // the status that sgemm returns instead of running
}

// Replaces the library's function in this program.
dnnl_status_t dnnl_sgemm(char ta, char tb, dnnl_dim_t m, dnnl_dim_t n, dnnl_dim_t k, float alpha, const float* a, dnnl_dim_t lda,
                         const float* b, dnnl_dim_t ldb, float beta, float* c, dnnl_dim_t ldc) {
  static const auto library = reinterpret_cast<decltype(&dnnl_sgemm)>(dlsym(RTLD_NEXT, "dnnl_sgemm"));
  return planted != dnnl_success ? planted : library(ta, tb, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
}

namespace tessera {
namespace {

void multiply() { cpu::matmul(Tensor::zeros({1, 127, 137}), Tensor::zeros({1, 137, 131}), Tensor::empty({1, 127, 131}), {}); }

class MatmulMemory : public testing::Test {
 protected:
  ~MatmulMemory() override { planted = dnnl_success; }
};

TEST_F(MatmulMemory, SgemmWithoutRoomIsOutOfMemory) {
  planted = dnnl_out_of_memory;
  const DecisionScope scope({.forced = "sgemm"});
  const std::string message = message_of<OutOfMemoryError>(multiply);
  EXPECT_TRUE(message.starts_with("cpu: out of memory: matmul: sgemm of [127, 137] x [137, 131]: ")) << message;
  EXPECT_NE(message.find(" bytes in use, the system has no more"), std::string::npos) << message;
}

TEST_F(MatmulMemory, AnotherStatusOfSgemmIsOurBug) {
  planted = dnnl_invalid_arguments;
  const DecisionScope scope({.forced = "sgemm"});
  EXPECT_EQ(message_of<InternalError>(multiply), "onednn: matmul: sgemm of [127, 137] x [137, 131]: ends with status 2");
}

TEST_F(MatmulMemory, AClockPassesOverIt) {
  planted = dnnl_out_of_memory;
  const std::size_t before = cpu::matmul_runs("matmul");
  const DecisionScope scope({.measure = true});
  multiply();
  ASSERT_EQ(scope.taken().size(), 1u);
  EXPECT_EQ(scope.taken().begin()->second, "matmul");
  EXPECT_EQ(cpu::matmul_runs("matmul"), before + 1);
}

}  // namespace
}  // namespace tessera
