#include "train/run/environment.h"

#include <omp.h>
#include <sched.h>

#include <cstdlib>
#include <fstream>

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

void set_gpu(Value& env, const DeviceInfo& gpu) {
  env.set("gpu", gpu.name);
  env.set("gpu_capability", gpu.capability);
  env.set("gpu_driver", gpu.driver);
  env.set("gpu_libraries", gpu.libraries);
}

}  // namespace

std::string version_text() { return str(build::kVersion, " (", build::kCommit, ")"); }

std::int64_t resolve_compute_threads(std::int64_t asked) {
  if (asked > 0) return asked;
  cpu_set_t set;
  CPU_ZERO(&set);
  return sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
}

void set_compute_threads(std::int64_t asked) { omp_set_num_threads(static_cast<int>(resolve_compute_threads(asked))); }

Value describe_environment(const ExperimentConfig& config) {
  Value env = Value::map();
  env.set("version", build::kVersion);
  env.set("commit", build::kCommit);
  env.set("compiler", build::kCompiler);
  env.set("build_type", build::kBuildType);
  env.set("onednn", cpu::onednn_version());
  const Device device = resolve_device(config.device);
  env.set("device", device.name());
  if (device.is_cuda()) set_gpu(env, device_info(device));
  env.set("processor", processor_name());
  env.set("isa", cpu::onednn_isa());
  env.set("kernel_isa", cpu::isa_name(cpu::isa()));
  const char* const wait_policy = std::getenv("OMP_WAIT_POLICY");
  env.set("omp_wait_policy", wait_policy != nullptr ? wait_policy : "default");
  env.set("compute_threads", resolve_compute_threads(config.threads.compute));
  env.set("host", host_name());
  return env;
}

std::string setup_text() {
  ExperimentConfig config;
  config.device = "cpu";
  const Value env = describe_environment(config);
  const auto of = [&](const char* key) { return env.at(key).as_string(); };
  return str(of("processor"), "; tessera ", version_text(), ", ", of("compiler"), ' ', of("build_type"), ", oneDNN ", of("onednn"),
             ", kernels ", of("kernel_isa"), ", OMP_WAIT_POLICY ", of("omp_wait_policy"));
}

// The wait policy moves clocks, not bytes.
std::vector<std::string> environment_changes(const Value& before, const Value& now) {
  std::vector<std::string> changes;
  for (const char* key : {"version", "commit", "compiler", "build_type", "onednn", "device", "gpu", "gpu_capability",
                          "gpu_driver", "gpu_libraries", "processor", "isa", "kernel_isa", "compute_threads"}) {
    const Value* old = before.find(key);
    const Value* current = now.find(key);
    if (old == nullptr && current == nullptr) continue;  // no GPU on either side
    if (old != nullptr && current != nullptr && *old == *current) continue;
    changes.push_back(
        str(key, " was ", old ? to_json(*old) : "not recorded", ", is ", current ? to_json(*current) : "not known"));
  }
  return changes;
}

}  // namespace tessera
