#include "train/experiment.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <set>

#include "core/device/precision.h"
#include "core/support/error.h"
#include "train/compute_threads.h"

namespace tessera {

namespace {

void require_names(Fields& f, const ExperimentConfig& config) {
  f.require(is_plain_name(config.name), "name", str("'", config.name, "' ", kNameRule));
  f.require(!config.stages.empty(), "stages", "is empty; a run needs a stage");
  std::set<std::string> names;
  for (const StageConfig& stage : config.stages) {
    f.require(names.insert(stage.name).second, "stages", str("two stages are named '", stage.name, "'; names must differ"));
  }
}

// A factorise block with `from` takes its settings from the admm block of that earlier stage.
void take_sources(Fields& f, std::vector<StageConfig>& stages) {
  for (std::size_t i = 0; i < stages.size(); ++i) {
    if (!stages[i].factorise || !stages[i].factorise->from) continue;
    FactoriseConfig& factorise = *stages[i].factorise;
    const auto end = stages.begin() + static_cast<std::ptrdiff_t>(i);
    const auto source = std::find_if(stages.begin(), end, [&](const StageConfig& each) {
      return each.name == *factorise.from && each.admm && !each.admm->sparsity;
    });
    const std::string block = str("stages[", i, "].factorise.");
    f.require(source != end, block + "from", str('\'', *factorise.from, "' is no earlier stage with an admm block of low rank"));
    if (source == end) continue;
    static_cast<LowRankConfig&>(factorise) = *source->admm;
    for (const auto& [key, problem] : factorise.form_problems()) f.require(false, block + key, problem);
  }
}

// Without a name, the teacher is the previous stage.
void name_teachers(Fields& f, std::vector<StageConfig>& stages) {
  for (std::size_t i = 0; i < stages.size(); ++i) {
    if (!stages[i].distill) continue;
    std::optional<std::string>& from = stages[i].distill->from;
    const std::string block = str("stages[", i, "].distill");
    f.require(i > 0, block, "the first stage has none before it to learn from");
    if (i > 0 && !from) from = stages[i - 1].name;
    const auto end = stages.begin() + static_cast<std::ptrdiff_t>(i);
    const bool earlier = std::any_of(stages.begin(), end, [&](const StageConfig& each) { return from == each.name; });
    f.require(i == 0 || earlier, block + ".from", str('\'', from.value_or(""), "' is no earlier stage"));
  }
}

}  // namespace

bool is_plain_name(const std::string& name) {
  if (name.empty() || name.front() == '.') return false;
  return std::all_of(name.begin(), name.end(),
                     [](unsigned char c) { return std::isalnum(c) || c == '.' || c == '_' || c == '-'; });
}

void ThreadsConfig::fields(Fields& f) {
  f.add("compute", compute,
        {.help = "OpenMP threads; 0 = every processor, resolved once and stored",
         .range = between(0, kMostComputeThreads),
         .example = "4",
         .observable = "report"});
  f.add("loader", loader,
        {.help = "threads that prepare batches; 0 = in the training thread",
         .range = between(0, 64),
         .example = "4",
         .observable = "plan"});
}

void CheckpointConfig::fields(Fields& f) {
  f.add("every", every, {.help = "distance between checkpoints", .range = positive, .example = "500s", .observable = "files"});
  f.add("keep", keep,
        {.help = "newest checkpoints kept beside the pinned ones", .range = at_least(1), .example = "5", .observable = "files"});
  f.add("best", best, {.help = "pin the checkpoint with the best validation metric", .observable = "files"});
  f.add("keep_best", keep_best,
        {.help = "stage: each finished stage keeps its best; run: it goes once a later stage's best is saved",
         .choices = {"stage", "run"},
         .observable = "files"});
  f.add("async", async,
        {.help = "train on while a copy of the state is written; false = wait for the disk and keep no copy in memory",
         .observable = "plan"});
  f.require(best || keep_best == "stage", "keep_best", "needs best: true, which pins the checkpoints that it lets go");
}

void LatencyConfig::fields(Fields& f) {
  f.add("batch", batch,
        {.help = "batch sizes timed for the table", .range = at_least(1), .example = "[1, 128]", .observable = "report"});
  f.add("repeats", repeats,
        {.help = "interleaved timings per batch size",
         .range = at_least(5),
         .example = "100",
         .observable = "none: more timings make a figure steadier, and change nothing else"});
}

void ReportConfig::fields(Fields& f) {
  f.add("latency", latency, {.help = "how the table times networks", .example = "{batch: [1, 128]}", .observable = "report"});
  f.add("decode", decode,
        {.help = "how it times a new position of a text, those in front of it cached; not at all without it",
         .example = "{batch: [1]}",
         .observable = "report"});
}

void TrainingConfig::fields(Fields& f) {
  f.add("optimizer", optimizer,
        {.help = "how weights move along their gradients", .example = "{name: adamw, lr: 0.001}", .observable = "bytes"});
  f.add("schedule", schedule,
        {.help = "learning rate over the steps of a stage", .example = "{name: cosine, warmup: 5%}", .observable = "bytes"});
  f.add("loss", loss, {.help = "cross-entropy settings", .example = "{label_smoothing: 0.1}", .observable = "bytes"});
  f.add("clip_norm", clip_norm,
        {.help = "largest global gradient norm; larger ones are scaled down to it",
         .range = positive,
         .example = "1.0",
         .observable = "bytes"});
  f.add("ema", ema,
        {.help = "exponential moving average of the weights, used for evaluation",
         .example = "{decay: 0.99}",
         .observable = "bytes"});
  f.add("micro_batch", micro_batch,
        {.help = "samples per forward; gradients accumulate up to data.batch",
         .range = at_least(1),
         .example = "32",
         .observable = "plan"});
  f.add("recompute", recompute,
        {.help = "true: compressed layers keep nothing between their factors for the backward, which computes it again",
         .observable = "plan"});
  f.add(
      "sync_batch_norm", sync_batch_norm,
      {.help = "true: in several processes batch norms normalise by the statistics of all of them; by a process's own without it",
       .example = "true",
       .observable = "none: one process has the whole batch"});
  f.add(
      "power_sgd", power_sgd,
      {.help = "compresses gradients by PowerSGD, so that several processes send less; one process compresses them too; CPU only",
       .example = "{rank: 2}",
       .observable = "bytes"});
}

void DistillConfig::fields(Fields& f) {
  f.add("from", from,
        {.help = "an earlier stage, whose network at its end is the teacher; the stage before",
         .example = "pretrain",
         .observable = "bytes"});
  f.add("temperature", temperature,
        {.help = "that the scores of both are divided by", .range = positive, .example = "2", .observable = "bytes"});
  f.add("weight", weight,
        {.help = "of the teacher's answers in the loss; the labels have the rest",
         .range = {.min = 0, .max = 1, .open_min = true},
         .example = "0.9",
         .observable = "bytes"});
}

void StageConfig::fields(Fields& f) {
  f.add("name", name,
        {.help = "shown in logs, tables and checkpoints", .example = "pretrain", .observable = "report", .required = true});
  f.add("train", train, {.help = "length of training in this stage", .range = positive, .example = "10e", .observable = "plan"});
  f.add("factorise", factorise,
        {.help = "replace layers by factored ones before this stage trains",
         .example = "{layers: 'layer*.conv*', ranks: {macs: 0.4}}",
         .observable = "plan"});
  f.add("admm", admm,
        {.help = "hold layers to low-rank or sparse weights while this stage trains them",
         .example = "{layers: 'layer*.conv*', ranks: {macs: 0.4}, rho: 0.001}",
         .observable = "bytes"});
  f.add("prune", prune,
        {.help = "set weights to zero, more and more of them, while this stage trains the others",
         .example = "{sparsity: {target: 0.9}}",
         .observable = "bytes"});
  f.add("shrink", shrink,
        {.help = "take channels that an earlier stage pruned out of the network, before this stage trains",
         .example = "{keep: always}",
         .observable = "report"});
  f.add("rigl", rigl,
        {.help = "train sparse weights whose mask moves to where gradients are large (Evci et al.)",
         .example = "{sparsity: 0.9}",
         .observable = "bytes"});
  f.add("sparsify", sparsify,
        {.help = "give layers that an earlier stage pruned kernels which skip their zeros, before this stage trains",
         .example = "{keep: always}",
         .observable = "report"});
  f.add("distill", distill,
        {.help = "learn an earlier stage's answers beside the labels",
         .example = "{temperature: 2, weight: 0.9}",
         .observable = "bytes"});
  training.fields(f);
  f.require(train.has_value() || !distill, "distill", "needs train: it is a part of the loss");
  f.require(train.has_value() || !admm, "admm", "needs train: weights come to their constraint by training");
  f.require(train.has_value() || !prune, "prune", "needs train: the weights that stay make up for those that go");
  f.require(train.has_value() || !rigl, "rigl", "needs train: masks move by the gradients of training");
  f.require(!prune || !rigl, "rigl", "has no place beside prune: both choose the masks of weights");
  f.require(is_plain_name(name), "name", str('\'', name, "' ", kNameRule));
  f.require(train.has_value() || factorise.has_value() || shrink.has_value() || sparsify.has_value(), "",
            "a stage needs train, factorise, shrink or sparsify, or several of them");
}

void ExperimentConfig::fields(Fields& f) {
  const std::span<const std::string_view> precisions = precision_names();
  f.add("version", version,
        {.help = "format of this file",
         .range = between(1, 1),
         .example = "1",
         .observable = "none: only 1 exists",
         .required = true});
  f.add("name", name, {.help = "folder of the runs", .example = "resnet20-cifar10", .observable = "files", .required = true});
  f.add("seed", seed,
        {.help = "of every random number", .range = between(0, 9007199254740992.0), .example = "7", .observable = "bytes"});
  f.add("device", device,
        {.help = "auto (the CPU), cpu, cuda or cuda:N",
         .example = "cpu",
         .observable = "none: a machine without a GPU has one device"});
  f.add("precision", precision,
        {.help = "compute precision; a device may not support all",
         .choices = {precisions.begin(), precisions.end()},
         .example = "f32",
         .observable = "plan"});
  f.add(
      "deterministic", deterministic,
      {.help = "true: fixed algorithms; false: the fastest, found by timing and kept in decisions.json", .observable = "files"});
  f.add("threads", threads, {.help = "compute and loader threads", .example = "{compute: 4}", .observable = "report"});
  f.add("data", data,
        {.help = "training, validation and test data",
         .example = "{name: mnist, root: data/mnist}",
         .observable = "plan",
         .required = true});
  f.add("model", model, {.help = "the network", .example = "{name: resnet20}", .observable = "plan", .required = true});
  training.fields(f);
  f.add("stages", stages,
        {.help = "run in order", .example = "[{name: train, train: 10e}]", .observable = "plan", .required = true});
  f.add("checkpoint", checkpoint, {.help = "when to save and what to keep", .example = "{every: 5e}", .observable = "files"});
  f.add("report", report, {.help = "what the table measures", .example = "{latency: {batch: [1, 128]}}", .observable = "report"});
  f.add("log_every", log_every,
        {.help = "steps between rows of metrics.jsonl; an epoch's last step has a row too",
         .range = at_least(1),
         .example = "10",
         .observable = "log"});
  require_names(f, *this);
  take_sources(f, stages);
  name_teachers(f, stages);
}

std::span<const std::string_view> training_keys() {
  static constexpr std::array<std::string_view, 9> keys{
      "optimizer", "schedule", "loss", "clip_norm", "ema", "micro_batch", "recompute", "sync_batch_norm", "power_sgd"};
  return keys;
}

std::int64_t steps_per_epoch(const DataConfig& data, std::int64_t samples) {
  return data.drop_last ? samples / data.batch : (samples + data.batch - 1) / data.batch;
}

StageLength length_of(const StageConfig& stage, std::int64_t steps_per_epoch) {
  return {.steps = stage.train->resolve(steps_per_epoch, 0), .steps_per_epoch = steps_per_epoch};
}

}  // namespace tessera
