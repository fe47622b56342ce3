// Later steps of a shape reuse the memory of the first ones, whatever algorithm runs them.
#include <gtest/gtest.h>
#include <sys/resource.h>

#include "core/cpu/allocator.h"
#include "core/cpu/panels/product.h"
#include "core/device/decisions.h"
#include "core/ops/conv2d_plan_cpu.h"
#include "core/ops/matmul_plan_cpu.h"
#include "core/rng.h"
#include "layers/linear.h"
#include "layers/models/model.h"
#include "layers/sequential.h"
#include "train/run/stage_trainer.h"
#include "train/tasks/classification.h"

namespace tessera {
namespace {

const Classification kTask;

long page_faults() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  return usage.ru_minflt;
}

struct Steps {
  std::string forced;  // the algorithm
  bool linear = false;  // linear layers, whose products choose; otherwise convolutions
  DType compute = DType::f32;
};

class StepsOfOneShape : public ::testing::TestWithParam<Steps> {
 protected:
  StepsOfOneShape() {
    if (!GetParam().linear) {
      shape_ = {16, 32, 32, 3};
      model_ = build_model(named_model("resnet20", 10), shape_);
    } else {
      shape_ = {64, 512};
      auto layers = std::make_unique<Sequential>();
      for (const char* name : {"fc1", "fc2", "fc3"}) {
        layers->add_child(name, std::make_unique<Linear>(LinearConfig{.in = 512, .out = 512}));
      }
      model_ = std::move(layers);
    }
    initialize(*model_, 1);
  }

  std::size_t runs() const {
    if (GetParam().forced == "panels") return cpu::panels::runs();
    return GetParam().linear ? cpu::matmul_runs(GetParam().forced) : cpu::conv2d_runs(GetParam().forced);
  }

  Shape shape_;
  std::unique_ptr<Module> model_;
};

// A fault is one page or, with huge pages, 512. So the memory returned to the system is counted as well.
TEST_P(StepsOfOneShape, UseTheMemoryOfTheFirst) {
  const DecisionScope scope({.forced = GetParam().forced});
  Batch batch{{"image", Tensor::empty(shape_)}, {"label", Tensor::zeros({shape_[0]}, DType::i64)}};
  fill_normal(batch.at("image"), RngStream(3, "test", "x"), 0, 1);
  StageTrainer trainer(*model_, TrainingConfig(), kTask, 1, 8, 8, GetParam().compute);
  for (std::int64_t step = 0; step < 3; ++step) trainer.step(batch, step, step);
  const long faults = page_faults();
  const std::size_t ran = runs();
  const cpu::Allocator::Traffic traffic = cpu::allocator().traffic();
  for (std::int64_t step = 3; step < 8; ++step) trainer.step(batch, step, step);
  EXPECT_EQ(cpu::allocator().traffic().taken, traffic.taken);
  EXPECT_EQ(cpu::allocator().traffic().returned, traffic.returned);
#ifdef __SANITIZE_ADDRESS__  // it does not reuse freed memory, so that small blocks are new every time
  static_cast<void>(faults);
#else
  EXPECT_LT(page_faults() - faults, 250) << "in five steps";
#endif
  EXPECT_GE(runs() - ran, 5u) << "the algorithm was not used";
}

std::string name_of(const Steps& steps) { return steps.forced + (steps.compute == DType::bf16 ? "_bf16" : ""); }

void PrintTo(const Steps& steps, std::ostream* out) { *out << name_of(steps); }

INSTANTIATE_TEST_SUITE_P(Cpu, StepsOfOneShape,
                         ::testing::Values(Steps{.forced = "nhwc"}, Steps{.forced = "blocked"}, Steps{.forced = "winograd_nhwc"},
                                           Steps{.forced = "nhwc", .compute = DType::bf16},
                                           Steps{.forced = "winograd_nhwc", .compute = DType::bf16},
                                           Steps{.forced = "matmul", .linear = true}, Steps{.forced = "sgemm", .linear = true},
                                           Steps{.forced = "panels", .linear = true},
                                           Steps{.forced = "matmul", .linear = true, .compute = DType::bf16}),
                         [](const auto& test) { return name_of(test.param); });

}  // namespace
}  // namespace tessera
