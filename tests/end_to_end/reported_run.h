// A fixture of runs that are reported: one that trained, was held to low rank, factorised, tuned and pruned.
#pragma once

#include "tests/end_to_end/trained_run.h"

namespace tessera::testing {

class ReportedRun : public TrainedRun {
 protected:
  static void SetUpTestSuite() {
    train_shared(tiny_experiment(R"(
data: {name: glyphs, count: 200, test_count: 20, batch: 20, val: 0.1}
optimizer: {name: sgd, lr: 0.05}
log_every: 3
stages:
  - {name: dense, train: 2e}
  - {name: held, train: 2e, admm: {layers: conv2, format: tucker2, ranks: {out: 4, in: 4}, keep: always, rho: 1, update: 4s}}
  - {name: factored, factorise: {from: held}}
  - {name: tuned, train: 1e}
  - {name: pruned, train: 2e, prune: {layers: conv*, sparsity: {target: 0.5, begin: 2s, end: 14s, every: 4s}}}
)"));
  }

  // Of runs and tables, with further words of the command.
  static std::string page(const std::vector<std::string>& sources, const std::vector<std::string>& more = {}) {
    const std::string file = *folder_ / "page.html";
    const Outcome outcome = run_program(joined(joined({"report"}, sources), joined({"-o", file}, more)));
    EXPECT_EQ(outcome.exit_code, 0) << outcome.output;
    return read_bytes(file);
  }
};

}  // namespace tessera::testing
