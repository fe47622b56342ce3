#include "train/bench_report.h"

#include "core/decisions.h"
#include "layers/fold.h"
#include "train/environment.h"
#include "train/experiment.h"

namespace tessera {

BenchReport run_bench(BenchNetwork network, const BenchOptions& options, const std::function<void(const std::string&)>& before) {
  BenchReport report{.target = network.target,
                     .state = network.state,
                     .setup = setup_text(),
                     .input = network.input,
                     .phase = options.phase,
                     .compute = network.compute,
                     .rounds = options.rounds,
                     .parts = {}};
  const TimingOptions timing{
      .phase = options.phase, .compute = network.compute, .rounds = options.rounds, .folded = for_inference};
  for (const std::int64_t threads : network.threads) {
    set_compute_threads(threads);
    const DecisionScope fastest({.measure = true});  // of its own: what is fastest depends on the threads
    for (const std::int64_t batch : network.batches) {
      before(where_timed(batch, options.phase, threads, timing.on_folded_copies(), timing.compute));
      Shape input = network.input;
      input.set(0, batch);
      report.parts.push_back({batch, threads, time_layers(network.model, network.dense, input, timing)});
    }
  }
  return report;
}

}  // namespace tessera
