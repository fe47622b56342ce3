// A YAML file with overrides upon it, on its way to a struct: what experiment files and those of `tessera compress` share.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/config/read.h"

namespace tessera {

// The file's tree with the overrides applied. Names that are relative to the file, those of the data block (for_each_data_file)
// and model.weights, are made absolute. Faults are appended to `problems`. Returns nothing where a fault ends the reading.
std::optional<Value> load_config_file(const std::string& path, std::span<const std::string> overrides,
                                      std::vector<ConfigProblem>& problems);

// A stored config may name a device that only another machine has; whoever computes with it resolves the device then.
enum class DeviceIs { named, here };

// Appends what is wrong with the keys `device` and `precision` of the file.
void check_device(const Value& root, const std::string& device, const std::string& precision, DeviceIs wanted,
                  std::vector<ConfigProblem>& problems);

// The problems as a user reads them: in the order of the file, each once. A fault of a top-level block shows again in every
// stage that inherits it. The first `from_yaml` problems are the YAML reader's; each of them shows again as a value of the wrong
// kind.
std::vector<ConfigProblem> tidy(std::vector<ConfigProblem> problems, std::size_t from_yaml);

// Where the file says "data", "stages[1].factorise.ranks", ...: for problems that show only once the network is built.
using Marks = std::map<std::string, Mark>;
Marks marks_of(const Value& root);

// A problem marked at the key `path`, or at the nearest block around it that the file has.
ConfigProblem problem_at(const Marks& marks, const std::string& path, std::string message);

}  // namespace tessera
