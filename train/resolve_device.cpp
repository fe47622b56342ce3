#include "train/resolve_device.h"

#include <optional>
#include <utility>

#include "core/device/device_info.h"
#include "core/support/error.h"

namespace tessera {
namespace {

constexpr const char* kAuto = "auto";

// Asking for GPUs starts the driver, so a run on the CPU does not ask.
bool needs_gpus(const std::string& name) { return name == kAuto ? kAutoTakesGpu : !Device::parse(name).is_cpu(); }

std::optional<Device> first_usable(const Gpus& gpus) {
  for (int index = 0; index < gpus.count; ++index) {
    if (!gpus.unusable.contains(index)) return Device::cuda(index);
  }
  return std::nullopt;
}

}  // namespace

Gpus gpus_of_process() {
  Gpus gpus{.count = cuda_device_count(), .why_none = why_no_cuda(), .unusable = {}};
  for (int index = 0; index < gpus.count; ++index) {
    if (std::string why = why_unusable(Device::cuda(index)); !why.empty()) gpus.unusable.emplace(index, std::move(why));
  }
  return gpus;
}

Device named_device(const std::string& name, const Gpus& gpus) {
  if (name != kAuto) return Device::parse(name);
  return gpus.taken_by_auto ? first_usable(gpus).value_or(Device::cpu()) : Device::cpu();
}

Device named_device(const std::string& name) { return named_device(name, needs_gpus(name) ? gpus_of_process() : Gpus()); }

Device resolve_device(const std::string& name, const Gpus& gpus) {
  const Device device = named_device(name, gpus);
  if (device.is_cpu()) return device;
  TESSERA_CHECK(gpus.count > 0, ConfigError, "device is ", device, ", but ", gpus.why_none, "; use cpu or auto");
  TESSERA_CHECK(device.index() < gpus.count, ConfigError, "device is ", device, ", but ",
                gpus.count == 1 ? std::string("there is 1 GPU, cuda:0")
                                : str("there are ", gpus.count, " GPUs, cuda:0 to cuda:", gpus.count - 1),
                "; use one of them, cpu or auto");
  const auto unusable = gpus.unusable.find(device.index());
  if (unusable != gpus.unusable.end()) {
    throw ConfigError(str("device is ", device, ", but ", unusable->second, "; use cpu or auto"));
  }
  return device;
}

Device resolve_device(const std::string& name) { return resolve_device(name, needs_gpus(name) ? gpus_of_process() : Gpus()); }

std::string choice_of_device(const std::string& name, const Gpus& gpus) {
  if (name != kAuto) return {};
  const Device device = named_device(name, gpus);
  const std::string choice = str("device: auto is ", device.is_cpu() ? "the CPU" : str(device));
  if (device == Device::cuda(0)) return choice;
  const std::optional<Device> left = first_usable(gpus);
  if (device.is_cpu() && left) {
    return str(choice, ": not all tests of computing on GPUs have passed on one yet; device=", *left, " takes the first");
  }
  return str(choice, ": ", gpus.count == 0 ? gpus.why_none : str(Device::cuda(0), " is left out, ", gpus.unusable.at(0)));
}

std::string choice_of_device(const std::string& name) {
  return choice_of_device(name, name == kAuto ? gpus_of_process() : Gpus());
}

}  // namespace tessera
