#include "bench/rivals/train_rival.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace tessera::bench {
namespace {

// On a GPU that nobody else uses, step times repeat within a few percent. Starting another finalist takes as long as timing it.
constexpr FinalistRule kCudaFinalists{.share = 1.1, .most = 2};

std::string text_of(const TorchSettings& settings) { return str(settings.compiled ? "" : "eager, ", to_string(settings)); }

std::vector<TorchSettings> all_settings(const TorchProgram& program) {
  if (program.cuda) return all_cuda_settings();
  std::vector<TorchSettings> all = all_torch_settings();
  if (!TorchRival(program, {}).environment().at("compiles").as_bool()) return all;
  for (TorchSettings settings : all_torch_settings()) {
    settings.compiled = true;
    all.push_back(settings);
  }
  return all;
}

std::vector<TorchSettings> first_pass(const TorchProgram& program, const TrainSweepOptions& options) {
  std::vector<TorchSettings> all = all_settings(program);
  std::erase_if(all, [&](const TorchSettings& settings) { return settings.channels_last && !options.images; });
  if (options.only.empty()) return all;
  for (std::size_t i = 0, count = all.size(); i < count; ++i) {
    for (const TorchSettings& variant : thread_variants(program, all[i], false)) all.push_back(variant);
  }
  const std::string like = text_of(all.front());
  std::erase_if(all, [&](const TorchSettings& settings) { return text_of(settings).find(options.only) == std::string::npos; });
  TESSERA_CHECK(!all.empty(), ConfigError, "'", options.only, "' is in none of torch's settings; they read like '", like, "'");
  return all;
}

}  // namespace

TrainRival::TrainRival(const TorchProgram& program, const TorchSettings& settings, const FirstLosses& ours)
    : torch_(program, settings), losses_(torch_.run(static_cast<std::int64_t>(ours.values.size())).loss) {
  for (std::size_t i = 0; i < ours.values.size(); ++i) {
    const bool equal = std::abs(ours.values[i] - losses_[i]) <= ours.tolerance * std::abs(losses_[i]);
    TESSERA_CHECK(equal, NumericError, "loss of step ", i, " is ", ours.values[i], ", torch's (", to_string(settings), ") is ",
                  losses_[i], "; they must agree to ", ours.tolerance, " of their value");
  }
}

TorchSweep<TorchSettings> sweep_training(const TorchProgram& program, const TrainSweepOptions& options, const FirstLosses& ours) {
  bool compiled = false;
  const auto run = [&](const TorchSettings& settings, Value& row) {
    TrainRival rival(program, settings, ours);
    const double ms = quantile(rival.run(options.steps), 0.5);
    row.set("memory_kib", rival.torch().memory_kib());
    row.set("ms", ms);
    compiled = compiled || settings.compiled;
  };
  const auto measure = [&](const TorchSettings& settings, Value& row) {
    try {
      run(settings, row);
    } catch (const NumericError& error) {
      if (!settings.cuda) throw;
      row.set("failed", error.what());  // on a GPU, ways differ by who wrote the kernels: a wrong one is no rival
    }
  };
  // Compiling takes a minute. On a GPU it is done once: with graphs, and without them only if it fails with them.
  const auto variants_of = [&](const TorchSettings& settings) -> std::vector<TorchSettings> {
    if (!options.only.empty()) return {};
    if (!program.cuda) return thread_variants(program, settings, false);
    if (std::exchange(compiled, true)) return {};
    return {{.channels_last = true, .compiled = true, .cuda = true}};
  };
  return sweep_torch(first_pass(program, options), variants_of, measure, program.cuda ? kCudaFinalists : FinalistRule{});
}

void add_eager(TorchSweep<TorchSettings>& swept) {
  if (std::ranges::any_of(swept.finalists, is_eager)) return;
  const Value* best = nullptr;
  for (const Value& row : swept.rows.as_list()) {
    const bool eager = !row.at("compiled").as_bool() && !row.at("graphs").as_bool();
    if (!eager || row.find("failed") != nullptr) continue;
    if (best == nullptr || row.at("ms").as_double() < best->at("ms").as_double()) best = &row;
  }
  if (best != nullptr) swept.finalists.push_back({.channels_last = best->at("channels_last").as_bool(), .cuda = true});
}

std::int64_t least_memory_kib(const Value& rows) {
  std::int64_t least = std::numeric_limits<std::int64_t>::max();
  for (const Value& row : rows.as_list()) {
    if (row.find("failed") == nullptr) least = std::min(least, row.at("memory_kib").as_int());
  }
  return least;
}

}  // namespace tessera::bench
