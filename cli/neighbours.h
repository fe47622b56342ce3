// Processes of this program that compute beside the one that `plan --ranks` times: `tessera plan` again, with an option that the
// help does not show.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/io/child_process.h"
#include "train/experiment.h"
#include "train/plan/scaling_plan.h"

namespace tessera::cli {

inline constexpr const char* kNeighbourOption = "--neighbour";

class NeighbourProcesses final : public Neighbours {
 public:
  ~NeighbourProcesses() override { close_inputs(); }  // before the first is waited for
  // Throws IoError where one cannot be started or fails.
  void start(std::int64_t count, const ExperimentConfig& config, std::int64_t ranks, const std::string& begin) override;
  void stop() override;

 private:
  void close_inputs();

  std::vector<std::unique_ptr<ChildProcess>> processes_;
};

// What such a process does, until its input ends. `begin` is the path of what start() was given. Returns the exit code.
int be_neighbour(const Experiment& experiment, std::int64_t ranks, const std::string& begin);

}  // namespace tessera::cli
