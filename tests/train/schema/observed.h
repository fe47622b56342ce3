// What an experiment shows where a schema key may be observable, for telling two experiments apart.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "core/config/value.h"

namespace tessera::testing {

// Plans and runs the experiment when first asked, in this process; the run's folder stays until the process ends.
class Observed {
 public:
  explicit Observed(Value file) : file_(std::move(file)) {}

  // `where` is "plan", "bytes", "report", "files" or "log"; see FieldSpec::observable. Figures of a clock are left out. What the
  // check before training has against the experiment, when it refuses it.
  const std::string& at(std::string_view where);
  bool refused();
  const std::filesystem::path& run_folder();

 private:
  struct Shown {
    std::filesystem::path folder;
    std::string output;
  };
  const std::string& plan();
  const Shown& run();
  std::string read(std::string_view where);

  Value file_;
  std::optional<std::string> plan_;
  bool refused_ = false;
  std::optional<Shown> run_;
  std::optional<std::string> bytes_, report_, files_, log_;
};

// The same object for equal files.
Observed& observed(const Value& file);

}  // namespace tessera::testing
