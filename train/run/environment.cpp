#include "train/run/environment.h"

#include <omp.h>
#include <sched.h>

#include <cstdlib>
#include <fstream>
#include <optional>

#include "core/config/read.h"
#include "core/cpu/isa.h"
#include "core/cpu/onednn_version.h"
#include "core/device/device_info.h"
#include "core/support/error.h"
#include "core/support/host.h"
#include "train/build_info.h"
#include "train/experiment.h"

namespace tessera {
namespace {

std::string processor_name() {
  std::ifstream info("/proc/cpuinfo");
  for (std::string line; std::getline(info, line);) {
    if (line.starts_with("model name")) return line.substr(line.find(':') + 2);
  }
  return "unknown";
}

struct Environment {
  std::string device;
  std::optional<DeviceInfo> gpu;
  std::int64_t compute_threads = 0;
  std::optional<std::int64_t> ranks;  // set if there is more than one

  void fields(Fields& f) {
    const char* const wait_policy = std::getenv("OMP_WAIT_POLICY");
    f.add_computed("version", std::string(build::kVersion), {.help = "of tessera"});
    f.add_computed("commit", std::string(build::kCommit), {.help = "it was built from"});
    f.add_computed("compiler", std::string(build::kCompiler), {.help = "it was built with"});
    f.add_computed("build_type", std::string(build::kBuildType), {.help = "CMake's name of it"});
    f.add_computed("onednn", cpu::onednn_version(), {.help = "version of oneDNN"});
    f.add("device", device, {.help = "where the run computes"});
    f.add_computed("gpu", of_gpu(&DeviceInfo::name), {.help = "its name"});
    f.add_computed("gpu_capability", of_gpu(&DeviceInfo::capability), {.help = "compute capability"});
    f.add_computed("gpu_driver", of_gpu(&DeviceInfo::driver), {.help = "version of the driver"});
    f.add_computed("gpu_libraries", of_gpu(&DeviceInfo::libraries), {.help = "versions of the CUDA libraries"});
    f.add_computed("processor", processor_name(), {.help = "its name"});
    f.add_computed("isa", cpu::onednn_isa(), {.help = "instruction set that oneDNN uses"});
    f.add_computed("kernel_isa", cpu::isa_name(cpu::isa()), {.help = "instruction set that tessera's kernels use"});
    f.add_computed("omp_wait_policy", std::string(wait_policy != nullptr ? wait_policy : "default"),
                   {.help = "OMP_WAIT_POLICY of the process"});
    f.add("compute_threads", compute_threads, {.help = "threads for kernels"});
    f.add("ranks", ranks, {.help = "processes that compute the run together"});
    f.add_computed("host", host_name(), {.help = "machine"});
  }

 private:
  std::optional<std::string> of_gpu(std::string DeviceInfo::*member) const {
    return gpu ? std::optional((*gpu).*member) : std::nullopt;
  }
};

}  // namespace

std::string version_text() { return str(build::kVersion, " (", build::kCommit, ")"); }

std::int64_t resolve_compute_threads(std::int64_t asked) {
  if (asked > 0) return asked;
  cpu_set_t set;
  CPU_ZERO(&set);
  return sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
}

void set_compute_threads(std::int64_t asked) { omp_set_num_threads(static_cast<int>(resolve_compute_threads(asked))); }

Value describe_environment(const ExperimentConfig& config, int ranks) {
  const Device device = resolve_device(config.device);
  Environment environment{device.name(), {}, resolve_compute_threads(config.threads.compute), {}};
  if (ranks > 1) environment.ranks = ranks;
  if (device.is_cuda()) environment.gpu = device_info(device);
  return write(environment);
}

std::string computing_device(const Value& environment) {
  const Value* const gpu = environment.find("gpu");
  return (gpu != nullptr ? *gpu : environment.at("processor")).as_string();
}

std::string timing_environment(const std::string& device, std::int64_t threads) {
  ExperimentConfig config;
  config.device = device;
  config.threads.compute = threads;
  Value environment = describe_environment(config);
  environment.erase("host");
  return to_json(environment);
}

std::string setup_text() {
  ExperimentConfig config;
  config.device = "cpu";
  const Value env = describe_environment(config);
  const auto of = [&](const char* key) { return env.at(key).as_string(); };
  return str(of("processor"), "; tessera ", version_text(), ", ", of("compiler"), ' ', of("build_type"), ", oneDNN ",
             of("onednn"), ", kernels ", of("kernel_isa"), ", OMP_WAIT_POLICY ", of("omp_wait_policy"));
}

// OMP_WAIT_POLICY is not compared, because it changes timings and not bytes.
std::vector<std::string> environment_changes(const Value& before, const Value& now) {
  std::vector<std::string> changes;
  for (const char* key : {"version", "commit", "compiler", "build_type", "onednn", "device", "gpu", "gpu_capability",
                          "gpu_driver", "gpu_libraries", "processor", "isa", "kernel_isa", "compute_threads", "ranks"}) {
    const Value* old = before.find(key);
    const Value* current = now.find(key);
    if (old == nullptr && current == nullptr) continue;  // absent on both sides, such as a GPU
    if (old != nullptr && current != nullptr && *old == *current) continue;
    const bool counts_ranks = std::string_view(key) == "ranks";  // a run of one process does not record it
    const auto told = [&](const Value* value, const char* unknown) {
      return value != nullptr ? to_json(*value) : std::string(counts_ranks ? "1" : unknown);
    };
    changes.push_back(str(key, " was ", told(old, "not recorded"), ", is ", told(current, "not known")));
  }
  return changes;
}

}  // namespace tessera
