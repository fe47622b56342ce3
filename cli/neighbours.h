// Processes of this program that compute beside the one that `plan --ranks` times: `tessera plan` again, with an option that the
// help does not show.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/io/child_process.h"
#include "core/io/scratch_folder.h"
#include "train/experiment.h"
#include "train/plan/scaling_plan.h"

namespace tessera::cli {

inline constexpr const char* kNeighbourOption = "--neighbour";

class NeighbourProcesses final : public Neighbours {
 public:
  // `words` are of the command line: the verb, the experiment file, its overrides.
  explicit NeighbourProcesses(std::vector<std::string> words) : words_(std::move(words)) {}
  void start(std::int64_t count, std::int64_t ranks, const std::string& begin) override;
  void stop() override;

 private:
  std::vector<std::string> words_;
  ScratchFolder folder_{"tessera_plan"};
  std::vector<std::unique_ptr<ChildProcess>> processes_;
};

// What such a process does, until its input ends. `begin` is the path of what start() was given. Returns the exit code.
int be_neighbour(const Experiment& experiment, std::int64_t ranks, const std::string& begin);

}  // namespace tessera::cli
