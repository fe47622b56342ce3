#include "bench/infer_workload.h"

#include <chrono>

#include "core/io/safetensors.h"
#include "core/io/vfs.h"
#include "core/rng.h"
#include "layers/builtin.h"
#include "layers/fold.h"
#include "layers/models/model.h"
#include "train/report/export.h"

namespace tessera::bench {
namespace {

constexpr std::int64_t kColours = 3;
constexpr std::uint64_t kSeed = 1;

// Statistics, scales and offsets as they are after training. With fresh ones folding would be trivial.
void randomise_norms(Module& network) {
  const auto fill = [](const std::string& path, const Tensor& value, double low, double high) {
    fill_uniform(value, RngStream(kSeed, "bench", path), low, high);
  };
  for (const NamedParameter& named : named_parameters(network)) {
    if (named.parameter->role() != ParameterRole::norm) continue;
    const bool scale = named.parameter->name() == "weight";
    fill(named.path, named.parameter->value(), scale ? 0.5 : -0.2, scale ? 1.5 : 0.2);
  }
  for (const NamedBuffer& named : named_buffers(network)) {
    const bool variance = named.buffer->name == "running_var";
    fill(named.path, named.buffer->value, variance ? 0.5 : -0.2, variance ? 2.0 : 0.2);
  }
}

std::vector<double> time_forwards(Module& network, const Tensor& x, std::int64_t count) {
  using Clock = std::chrono::steady_clock;
  const NoGrad no_grad;
  std::vector<double> ms;
  for (std::int64_t i = 0; i < count; ++i) {
    const auto start = Clock::now();
    network(Var(x), Context{});
    ms.push_back(std::chrono::duration<double, std::milli>(Clock::now() - start).count());
  }
  return ms;
}

}  // namespace

InferWorkload::InferWorkload(const InferCase& timed, const std::function<void(std::unique_ptr<Module>&)>& change)
    : x_(Tensor::empty({timed.batch, timed.side, timed.side, kColours})) {
  network_ = build_model(named_model(timed.model, timed.classes), x_.shape());
  initialize(*network_, kSeed);
  randomise_norms(*network_);
  if (change) change(network_);
  folded_ = folded(*network_, builtin_layers());
  fill_normal(x_, RngStream(kSeed, "bench", "images"), 0, 1);
}

void InferWorkload::write_inputs(const std::filesystem::path& directory) {
  export_torch(real_vfs(), *network_, x_.shape(), Value::map(), directory);
  SafetensorsFile batch;
  batch.tensors["x"] = x_;
  write_file_atomically(real_vfs(), directory / "x.safetensors", encode_safetensors(batch));
}

std::vector<float> InferWorkload::logits() {
  const NoGrad no_grad;
  return (*folded_)(Var(x_), Context{}).value().to_vector<float>();
}

std::vector<double> InferWorkload::run(std::int64_t count) { return time_forwards(*folded_, x_, count); }

std::vector<double> InferWorkload::run_unfolded(std::int64_t count) { return time_forwards(*network_, x_, count); }

}  // namespace tessera::bench
