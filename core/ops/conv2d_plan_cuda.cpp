#include "core/ops/conv2d_plan_cuda.h"

#include <algorithm>
#include <exception>
#include <utility>
#include <vector>

#include "core/cuda/runtime/context.h"
#include "core/device/decisions.h"
#include "core/device/device_choice.h"
#include "core/device/device_info.h"
#include "core/device/precision.h"
#include "core/support/error.h"
#include "core/support/log.h"
#include "core/support/rounding.h"

namespace tessera::cuda {
namespace {

using Method = Conv2dPlan::Method;

constexpr std::int64_t kTensorCoreChannels = 8;  // half types pad both numbers of channels to a multiple of this
constexpr std::size_t kMostOwn = 4;

constinit bool libraries_alone = false;

// "cuda.conv2d.forward n128 h32 w32 c16>16 k3x3 s1x1 p1x1 d1x1 g1 bf16 bias0 sm90x132x3352", followed by " relu", " residual" and
// " libraries" where they hold.
std::string decision_key(Conv2dPass pass, const Conv2dGeometry& g, DType dtype, const ConvEpilogue& epilogue, Device device) {
  const bool tf32 = dtype == DType::f32 && tf32_products();
  return str("cuda.conv2d.", name_of(pass), ' ', describe(g), ' ', tf32 ? "tf32" : name_of(dtype), " bias",
             static_cast<int>(epilogue.bias), ' ', chip_name(device), epilogue.relu ? " relu" : "",
             epilogue.residual ? " residual" : "", libraries_alone ? " libraries" : "");
}

std::int64_t padded(std::int64_t channels, const Conv2dGeometry& g, DType dtype) {
  return is_half(dtype) && g.options.groups == 1 ? round_up(channels, kTensorCoreChannels) : channels;
}

std::vector<Conv2dPlan> library_plans(Conv2dPass pass, const Conv2dGeometry& g, DType dtype, ConvEpilogue epilogue,
                                      Device device, const WantedEngines& engines) {
  Conv2dGeometry seen = g;
  seen.in = padded(g.in, g, dtype);
  seen.out = padded(g.out, g, dtype);
  if (seen.out != g.out) epilogue = {};  // it runs after the padding channels are removed
  std::vector<Conv2dPlan> all;
  for (auto& library : dnn_convolutions(pass, seen, dtype, epilogue, tf32_products(), device, engines)) {
    std::string name = library->name();
    all.push_back({Method::library, std::move(name), std::move(library), std::nullopt, seen.in, seen.out});
  }
  return all;
}

// Our own kernels, fastest prediction first. The first is named "own", the others after their description.
std::vector<Conv2dPlan> own_plans(Conv2dPass pass, const Conv2dGeometry& g, DType dtype, Device device) {
  std::vector<Conv2dPlan> all;
  for (CoreConvPlan& own : core_conv_candidates(pass, g, dtype, limits_of(device), nullptr)) {
    if (all.size() == kMostOwn) break;
    std::string name = all.empty() ? std::string("own") : str("own ", describe(own));
    all.push_back({Method::own, std::move(name), nullptr, std::move(own)});
  }
  return all;
}

// Without a choice, the first candidate runs. `reason` says why that is not one of our own kernels, if it is not.
std::vector<Conv2dPlan> candidates_for(Conv2dPass pass, const Conv2dGeometry& g, DType dtype, const ConvEpilogue& epilogue,
                                       bool choosing, const WantedEngines& engines, Device device,
                                       std::string& reason) {
  std::vector<Conv2dPlan> all;
  if (g.is_pointwise()) all.push_back({Method::gemm, "gemm"});
  const auto predicted = plan_core_conv(pass, g, dtype, limits_of(device), &reason);
  const bool leads = predicted && !tf32_products() && !libraries_alone;  // the model predicts the library's f32 speed, not tf32
  if (predicted && !leads) reason = libraries_alone ? "no other is asked for" : "the library's tensor cores multiply in tf32";
  if (leads) all.push_back({Method::own, "own", nullptr, predicted});
  for (Conv2dPlan& plan : library_plans(pass, g, dtype, epilogue, device, engines)) all.push_back(std::move(plan));
  if (!choosing || libraries_alone) return all;
  for (Conv2dPlan& plan : own_plans(pass, g, dtype, device)) {
    if (!leads || plan.algorithm != "own") all.push_back(std::move(plan));
  }
  return all;
}

bool rounds_gradient(const Conv2dPlan& plan) { return plan.library && plan.library->rounds_gradient(); }

// The candidates that run at all. Those that round a gradient are dropped if the first one kept does not. Without a choice, only
// the first candidate that runs is kept.
std::vector<Conv2dPlan> usable(std::vector<Conv2dPlan> all, bool choosing, const std::function<bool(const Conv2dPlan&)>& run) {
  std::vector<Conv2dPlan> kept;
  std::exception_ptr out_of_memory;
  for (Conv2dPlan& plan : all) {
    if (rounds_gradient(plan) && !kept.empty() && !rounds_gradient(kept.front())) continue;
    try {
      if (!run(plan)) continue;
    } catch (const OutOfMemoryError&) {
      out_of_memory = std::current_exception();
      continue;
    } catch (const DeviceError& error) {
      log_warning(str("conv2d: '", plan.algorithm, "' is not used: ", error.what()));
      continue;
    }
    kept.push_back(std::move(plan));
    if (!choosing) break;
  }
  if (kept.empty() && out_of_memory) std::rethrow_exception(out_of_memory);
  return kept;
}

}  // namespace

LibraryConvolutions::LibraryConvolutions(bool alone) noexcept : outer_(std::exchange(libraries_alone, alone)) {}
LibraryConvolutions::~LibraryConvolutions() { libraries_alone = outer_; }
bool library_convolutions() noexcept { return libraries_alone; }

std::shared_ptr<Conv2dPlan> choose_conv2d_plan(Conv2dPass pass, const Conv2dGeometry& g, DType dtype,
                                               const ConvEpilogue& epilogue, Device device,
                                               const std::function<bool(const Conv2dPlan&)>& run) {
  const bool choosing = decisions_active() && !recording_graph() && g.flops() >= kLeastFlopsToMeasure;
  const std::string key = decision_key(pass, g, dtype, epilogue, device);
  const DecisionOutlook outlook = choosing ? outlook_of(key) : DecisionOutlook();
  const WantedEngines engines{.all = outlook.measured, .only = outlook.known};
  std::string reason;
  std::vector<Conv2dPlan> all =
      usable(candidates_for(pass, g, dtype, epilogue, choosing, engines, device, reason), choosing, run);
  if (all.empty()) {
    if (dtype != DType::f64) log_warning(str("conv2d: no library has ", name_of(pass), " of ", describe(g), " in ", dtype,
                                             " and none of our kernels takes it: it runs in plain loops"));
    return std::make_shared<Conv2dPlan>(Conv2dPlan{Method::naive, "naive"});
  }
  std::size_t chosen = 0;
  if (choosing) {
    std::vector<std::string> names;
    for (const Conv2dPlan& plan : all) names.push_back(plan.algorithm);
    chosen = choose_on(device, key, names, [&](std::size_t i) { run(all[i]); });
  }
  const bool own = all[chosen].method == Method::own;
  if (!own && reason.empty()) {
    const bool could = std::ranges::any_of(all, [](const Conv2dPlan& plan) { return plan.method == Method::own; });
    reason = could ? "chosen before our kernel" : "our kernel did not run";
  } else if (!own) {
    reason = "the model: " + reason;
  }
  log(LogLevel::debug, str(key, ": ", all[chosen].algorithm, own ? "" : "; " + reason));
  return std::make_shared<Conv2dPlan>(std::move(all[chosen]));
}

}  // namespace tessera::cuda
