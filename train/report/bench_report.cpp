#include "train/report/bench_report.h"

#include "core/device/decisions.h"
#include "core/device/precision.h"
#include "layers/fold.h"
#include "train/report/bench_device.h"
#include "train/run/environment.h"

namespace tessera {

std::string where_timed(const BenchReport& report, const BenchPart& part) {
  return where_timed({.batch = part.batch,
                      .phase = report.phase,
                      .length = report.phase == Phase::decode ? report.input[1] : 0,
                      .machine = report.gpu.empty() ? machine_text(Device::cpu(), part.threads) : report.gpu,
                      .folded = report.phase != Phase::training,
                      .compute = report.compute,
                      .tf32 = report.tf32});
}

BenchReport run_bench(BenchNetwork network, const BenchOptions& options, const std::function<void(const std::string&)>& before) {
  const bool on_gpu = network.device.is_cuda();
  const Sampling sampling = Sampling::told_in(options.rounds);
  BenchReport report{.target = network.target,
                     .state = network.state,
                     .setup = setup_text(network.device),
                     .gpu = on_gpu ? device_info(network.device).name : std::string(),
                     .input = network.input,
                     .phase = options.phase,
                     .compute = network.compute,
                     .tf32 = network.tf32,
                     .rounds = sampling.all_rounds(),
                     .parts = {}};
  const TimingOptions timing{.phase = options.phase,
                             .compute = network.compute,
                             .device = network.device,
                             .sampling = sampling,
                             .folded = for_inference};
  const Tf32Products products(network.tf32);
  for (const std::int64_t threads : network.threads) {
    set_compute_threads(threads);
    const DecisionScope fastest({.measure = true});  // one scope per thread count, because the fastest choice depends on it
    for (const std::int64_t batch : network.batches) {
      BenchPart part{.batch = batch, .threads = on_gpu ? 0 : threads, .rows = {}};
      before(where_timed(report, part));
      Shape input = network.input;
      input.set(0, batch);
      part.rows = time_layers(network.model, network.dense, input, timing);
      report.parts.push_back(std::move(part));
    }
  }
  return report;
}

}  // namespace tessera
