// A small run with everything that a resume could lose: order, augmentation, dropout, batch norm, momentum, a moving average,
// warm-up, threads, two factorisations.
#pragma once

#include <string>
#include <vector>

namespace tessera::testing {

// Named "small". 13 steps an epoch; global steps 1-26 dense, 27 factorised, 28-40 finetuned, 41-47 again.
extern const char* const kSmallExperiment;

// What two equal runs have in common to the byte: the metrics, report and layers, and of the last checkpoint the
// state, the manifest and every tensor.
std::string result_of(const std::string& run);
std::string tensors_of(const std::string& run);  // the tensors alone

// Starts the run with the words `train`, which make the folder `run`, and kills it at each of these places in turn; goes on with
// resume each time, to its end. The small run's: in each stage, at a save and in a factorisation.
void train_killed_and_resumed(std::vector<std::string> train, const std::string& run,
                              const std::vector<std::string>& places = {"step:9", "save:26", "step:33", "factorise:3", "step:45"},
                              const std::vector<std::string>& environment = {});

}  // namespace tessera::testing
