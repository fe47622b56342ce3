// scikit-learn's randomized_svd in a child process.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "core/config/value.h"
#include "core/io/child_process.h"

namespace tessera::bench {

struct SklearnProgram {
  std::string python;
  std::string script;
  int threads = 2;
};

// How randomized_svd is asked; its defaults are 10 columns of oversampling, and 7 power iterations of ranks below a tenth of the
// smaller side.
struct SklearnWay {
  std::string name;
  std::int64_t oversampling;
  std::int64_t iterations;  // -1: "auto"
};

class SklearnRival {
 public:
  // Throws ConfigError when there is no such interpreter or it cannot import scikit-learn.
  explicit SklearnRival(const SklearnProgram& program);

  int threads() const noexcept { return threads_; }
  const Value& environment() const noexcept { return environment_; }  // versions, threads, blas
  double matmul_gflops();  // of 1024^3 in f32
  // The matrix [n, n] of f32 in a file, row by row.
  void load(const std::filesystem::path& file, std::int64_t n);
  double relative_error(const SklearnWay& way, std::int64_t rank);
  std::vector<double> run(const SklearnWay& way, std::int64_t rank, std::int64_t count);  // milliseconds of each call

 private:
  Value ask(const std::string& line);

  int threads_;
  ChildProcess child_;
  Value environment_;
};

}  // namespace tessera::bench
