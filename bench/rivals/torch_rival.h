// PyTorch doing the same work in a child process, under one setting of its knobs.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "bench/train_workload.h"
#include "core/config/value.h"
#include "core/io/child_process.h"

namespace tessera::bench {

struct TorchSettings {
  bool channels_last = true;
  bool avx512 = false;  // or avx2: ATen's own loops; oneDNN and BLAS choose for themselves
  bool tuned_malloc = false;  // glibc keeps freed pages: activations are not faulted in again at every step
  bool compiled = false;  // torch.compile
  bool passive = true;  // OMP_WAIT_POLICY: waiting threads sleep; else it is not set, and they spin before they sleep
  bool one_thread = false;  // or as many as the program says
  bool cuda = false;  // on a GPU, where layout, compilation and the next are all there is to choose
  bool graphs = false;  // a step is recorded as a CUDA graph and replayed
  bool operator==(const TorchSettings&) const = default;
};
std::string to_string(const TorchSettings& settings);
Value to_value(const TorchSettings& settings);
std::vector<TorchSettings> all_torch_settings();  // not compiled, as not every torch can, and with the passive wait policy

// On a GPU: eager and recorded in either layout; compiled and recorded in channels last.
std::vector<TorchSettings> all_cuda_settings();

// The program to run and the folder of what it is to work on.
struct TorchProgram {
  std::string python;
  std::string script;
  std::filesystem::path inputs;
  int threads = 2;
  std::vector<std::string> options = {};  // further words for the script
  bool cuda = false;
};

int threads_of(const TorchProgram& program, const TorchSettings& settings);
// `settings` under the default wait policy and, where it is worth a run, in one thread. None where there is one thread only.
std::vector<TorchSettings> thread_variants(const TorchProgram& program, const TorchSettings& settings, bool try_one_thread);

// Thrown when there is no such interpreter or it has no torch.
class TorchMissing : public Error {
 public:
  using Error::Error;
};

class TorchRival {
 public:
  TorchRival(const TorchProgram& program, const TorchSettings& settings);

  const TorchSettings& settings() const noexcept { return settings_; }
  int threads() const noexcept { return threads_; }
  const Value& environment() const noexcept { return environment_; }  // version, threads, capability, blas
  Value ask(const std::string& line);  // what the script answers to a command
  Steps run(std::int64_t count);
  std::int64_t memory_kib();  // the most that was resident until now, less the most before the network was built

 private:
  TorchSettings settings_;
  int threads_;
  ChildProcess child_;
  Value environment_;
};

// The rate of torch's product of 1024 x 1024 matrices, f32, the best of several before and after the peak: a processor that has
// just run at its peak may be slowed down behind it, and that is not torch's fault. Throws InternalError where it is under 0.6 of
// the multiply-add peak of as many threads in twelve attempts, with `pause` between them, a minute in all: such a rival is
// crippled, and the comparison void.
struct FairProduct {
  double gflops;  // of torch's 1024^3
  double peak;  // of the multiply-adds, measured beside it
  int threads;  // of either
};
using MeasurePeak = std::function<double(int threads)>;
void pause_between_attempts();
// A rival that can tell the rate of its product.
struct ProductOfRival {
  std::string rival, way;  // for messages: "torch", "channels_last, avx2"
  int threads;
  std::function<double()> gflops;
};
FairProduct fair_product(const ProductOfRival& rival, const MeasurePeak& measure_peak,
                         const std::function<void()>& pause = pause_between_attempts);
FairProduct fair_product(TorchRival& rival, const MeasurePeak& measure_peak,
                         const std::function<void()>& pause = pause_between_attempts);

// fair_product() of each rival: any of them may turn out the fastest.
template <class Rival>
std::vector<FairProduct> fair_products(const std::vector<std::unique_ptr<Rival>>& rivals, const MeasurePeak& measure_peak,
                                       const std::function<void()>& pause = pause_between_attempts) {
  std::vector<FairProduct> products;
  for (const auto& rival : rivals) products.push_back(fair_product(rival->torch(), measure_peak, pause));
  return products;
}

// Sets "torch_matmul_gflops", or that of another rival, "fma_peak_gflops" and "fma_peak_threads".
void set_product(Value& row, const FairProduct& product, const std::string& rival = "torch");

// Runs `measure`. A machine without torch is unusable for it, as a wrong argument is: ConfigError says what to install.
void or_explain_missing_torch(const std::function<void()>& measure);

}  // namespace tessera::bench
