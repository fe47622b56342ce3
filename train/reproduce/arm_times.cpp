#include "train/reproduce/arm_times.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "compress/timing/latency.h"
#include "core/device/decisions.h"
#include "core/device/precision.h"
#include "core/support/error.h"
#include "layers/decoding.h"
#include "layers/fold.h"
#include "train/reproduce/cell_run.h"
#include "train/reproduce/comparison.h"
#include "train/run/compute_dtype.h"
#include "train/run/environment.h"
#include "train/run/stage_ends.h"

namespace tessera {
namespace {

// The networks of a TimedGroup, in its order.
struct Networks {
  std::vector<std::string> arms;
  std::vector<std::unique_ptr<Module>> trained;  // in the form used in training
  std::vector<std::unique_ptr<Module>> folded;
  ExperimentConfig config;  // of the first network; the others read inputs of the same shape
};

Networks load_networks(Vfs& vfs, const TablePlan& plan, const TimedGroup& group, std::span<const ArmRow> rows) {
  Networks networks;
  for (const std::size_t i : group.rows) {
    const ArmRow& row = rows[i];
    const Cell cell = plan.first_cell(row);
    const Way way = find_way(vfs, cell, plan.runs());
    TESSERA_CHECK(way.kind == Way::Kind::measure, IoError, "the run of ", cell.experiment.config.name, " is gone from ",
                  plan.runs());
    if (networks.arms.empty()) networks.config = cell.experiment.config;
    std::vector<StageEnd> ends = load_stage_ends(vfs, RunFolder::open(vfs, way.run), "reproduce");
    move_to(*ends.back().model, resolve_device(networks.config.device));
    networks.arms.push_back(row.arm);
    networks.folded.push_back(for_inference(*ends.back().model));
    networks.trained.push_back(std::move(ends.back().model));
  }
  return networks;
}

// Results may be older than the table's `decode` key, and then no cell was left to check.
void require_all_decode(const Networks& networks) {
  for (std::size_t i = 0; i < networks.arms.size(); ++i) require_decoding(*networks.folded[i], "arm " + networks.arms[i]);
}

ArmTimes time_batch(const Networks& networks, const TimedBatch& timed, std::int64_t repeats) {
  std::vector<Module*> modules;
  for (const auto& network : timed.phase == Phase::training ? networks.trained : networks.folded)
    modules.push_back(network.get());
  Shape input = sample_shape(networks.config.data);
  input.set(0, timed.batch);
  const PairedTiming timing =
      time_networks(modules, input, repeats,
                    {.phase = timed.phase, .compute = compute_dtype_of(networks.config), .device = device_of(*modules.front())});
  const Value environment = describe_environment(networks.config);
  ArmTimes times;
  times.batch = timed.batch;
  times.phase = name_of(timed.phase);
  times.commit = environment.at("commit").as_string();
  times.processor = computing_device(environment);
  times.threads = resolve_device(networks.config.device).is_cuda() ? 0 : environment.at("compute_threads").as_int();
  for (std::size_t i = 0; i < modules.size(); ++i) {
    times.arms.push_back({networks.arms[i], timing.networks[i], timing.speedup[i], timing.alone[i]});
  }
  return times;
}

void time_group(Vfs& vfs, TablePlan& plan, const TimedGroup& group, std::span<const ArmRow> rows, const StopRequest& stop,
                const std::function<void(const std::string&)>& say) {
  std::vector<TimedBatch> missing = plan.table().timed();
  const ArmRow& first = rows[group.rows.front()];
  std::erase_if(missing,
                [&](const TimedBatch& timed) { return plan.results().find_times(group.key, first.arm, timed) != nullptr; });
  if (missing.empty()) return;
  const DecisionScope fastest({.measure = true});  // every network at its best
  const Networks networks = load_networks(vfs, plan, group, rows);
  if (plan.table().decode) require_all_decode(networks);
  set_compute_threads(networks.config.threads.compute);
  const Tf32Products products(takes_tf32(networks.config));
  for (const TimedBatch& timed : missing) {
    if (stop.requested()) throw Stopped();
    say(str("timing ", networks.arms.size(), networks.arms.size() == 1 ? " network" : " networks", " on inputs of ",
            first.input.erase(0), " at batch ", timed.batch, ", ", name_of(timed.phase)));
    ArmTimes times = time_batch(networks, timed, plan.table().repeats_of(timed.phase));
    times.networks = group.key;
    plan.results().append(times);
  }
}

}  // namespace

void time_arms(Vfs& vfs, TablePlan& plan, const StopRequest& stop, const std::function<void(const std::string&)>& say) {
  const std::vector<ArmRow> rows = plan.view().rows;
  for (const TimedGroup& group : timed_groups(rows)) time_group(vfs, plan, group, rows, stop, say);
}

}  // namespace tessera
