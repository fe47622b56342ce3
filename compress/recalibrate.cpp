#include "compress/recalibrate.h"

#include <string>
#include <vector>

#include "core/finite.h"
#include "core/support/error.h"
#include "layers/batch_norm.h"
#include "layers/scores.h"

namespace tessera {
namespace {

// A batch-norm buffer, and the sum of its values over the batches, f64 [channels].
struct Statistic {
  std::string name;
  Buffer* buffer;
  double momentum;
  Tensor sum;
};

std::vector<Statistic> statistics_of(Module& root) {
  std::vector<Statistic> all;
  for_each_module(root, [&](Module& module) {
    const auto* const norm = dynamic_cast<const BatchNorm*>(&module);
    if (norm == nullptr || norm->options().momentum == 0) return;
    for (const auto& buffer : module.buffers()) {
      all.push_back({join_path(module.path(), buffer->name), buffer.get(), norm->options().momentum,
                     Tensor::zeros(buffer->value.shape(), DType::f64)});
    }
  });
  return all;
}

void add_to(const Tensor& sum, const Tensor& value, double scale) {
  const Tensor host = value.to(Device::cpu()).to(DType::f64).contiguous();
  for (std::int64_t i = 0; i < sum.numel(); ++i) sum.data<double>()[i] += scale * host.data<double>()[i];
}

}  // namespace

bool recalibrate(Module& root, const TrainingBatches& batches, std::int64_t count) {
  if (count == 0) return false;
  const NoGrad no_grad;
  std::vector<Statistic> statistics = statistics_of(root);
  if (statistics.empty()) return false;
  const StepState step(device_of(root));
  for (std::int64_t i = 0; i < count; ++i) {
    // From zero, one update of the running statistics gives momentum times those of the batch.
    for (const Statistic& statistic : statistics) statistic.buffer->value.fill(0);
    scores(root, batches.parts(i), Context{.training = true, .seed = 0, .step = &step}, batches.compute);
    for (const Statistic& statistic : statistics) {
      add_to(statistic.sum, statistic.buffer->value, 1 / (statistic.momentum * static_cast<double>(count)));
    }
  }
  for (const Statistic& statistic : statistics) {
    TESSERA_CHECK(all_finite(statistic.sum), NumericError, statistic.name,
                  ": its values on the training batches hold NaN or Inf");
    statistic.buffer->value.copy_from(statistic.sum.to(statistic.buffer->value.dtype()).to(statistic.buffer->value.device()));
  }
  return true;
}

}  // namespace tessera
