#include "train/run/rank_follower.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>
#include <utility>

#include "core/device/precision.h"
#include "core/support/error.h"
#include "core/support/host.h"
#include "core/support/text.h"
#include "train/run/compute_dtype.h"
#include "train/run/decisions_file.h"
#include "train/run/environment.h"
#include "train/run/rank_leader.h"
#include "train/run/rank_messages.h"
#include "train/run/rank_timings.h"

namespace tessera {
namespace {

class Follower {
 public:
  Follower(Communicator& ranks, const StopRequest& stop, RankLog& log) : ranks_(ranks), stop_(stop), log_(log) {}

  RunOutcome run() {
    for (;;) {
      RankMessage message = hear(ranks_);
      switch (message.kind) {
        case RankMessageKind::threads: static_cast<void>(fair_threads(ranks_)); break;
        case RankMessageKind::run: begin(message.text); break;
        case RankMessageKind::stage: train_stage(std::move(message.text)); break;
        case RankMessageKind::times: time_layers(message.text); break;
        case RankMessageKind::finished: log_.line("finished"); return RunOutcome::finished;
        case RankMessageKind::stopped: log_.line("stopped"); return RunOutcome::stopped;
        case RankMessageKind::decisions:
        case RankMessageKind::evaluated:
          throw InternalError(str("ranks: rank 0 sent a message '", static_cast<char>(message.kind), "' outside of a stage"));
      }
    }
  }

 private:
  // The counterpart of RankLeader::begin().
  void begin(const std::string& text) {
    const Value run = parse_json(text, "rank 0");
    const Experiment experiment = parse_experiment(run.at("config"));
    const ExperimentConfig& config = experiment.config;
    set_compute_threads(config.threads.compute);
    tf32_.emplace(takes_tf32(config));
    log_.open(run.at("logs").as_list().at(static_cast<std::size_t>(ranks_.rank())).as_string());
    log_.line(str("rank ", ranks_.rank(), " of ", ranks_.size(), ", process ", getpid(), " on ",
                  describe_environment(config).at("host").as_string(), ", ", resolve_compute_threads(config.threads.compute),
                  " compute threads"));
    state_.emplace(config, data_of(config), ranks_);
    compare_keys(ranks_, machine_of_rank(config), "the program or machine");
    compare_keys(ranks_, state_->data_keys(), "the data");
    static_cast<void>(ranks_that_time(ranks_, config));
  }

  // The first rank of each machine loads first. It makes the caches, such as those of tokens, that the other ranks there read.
  DataSplits data_of(const ExperimentConfig& config) {
    const auto load = [&config] { return load_data(config.data, static_cast<std::uint64_t>(config.seed)); };
    const std::vector<int> firsts = first_ranks(ranks_, host_name());
    const bool first = std::ranges::find(firsts, ranks_.rank()) != firsts.end();
    std::optional<DataSplits> data;
    if (first) data = load();
    ranks_.barrier();
    return first ? *std::move(data) : load();
  }

  // The counterpart of a round of RankLeader::time_layers().
  void time_layers(const std::string& round) {
    TESSERA_CHECK(state_, InternalError, "ranks: rank 0 asked for times before the run");
    state_->forget_training();  // frees the last stage's trainer and loader, which otherwise stay until the next stage begins
    static_cast<void>(ranks_.all_gather(answer_to_round(round, ranks_.rank(), state_->config(), log_)));
  }

  void train_stage(std::string text) {
    TESSERA_CHECK(state_, InternalError, "ranks: rank 0 began a stage before the run");
    load_stage(std::exchange(text, {}));
    compare_models(ranks_, state_->model());
    const std::int64_t total = state_->stage_steps();
    state_->begin_training();
    const Position& position = state_->position();
    const std::string stage = str("stage ", state_->stage().name);
    log_.line(str(stage, ": from step ", position.stage_step, " of ", total));
    std::int64_t taken = 0;
    std::chrono::duration<double, std::milli> took{};
    while (position.stage_step < total) {
      if (agree_to_stop()) return;
      const auto start = std::chrono::steady_clock::now();
      state_->step();
      took += std::chrono::steady_clock::now() - start;
      ++taken;
      static_cast<void>(state_->trainer()->take_rows());  // dropped: rank 0 logs its own rows, which are the same
      const bool epoch = position.stage_step % state_->steps_per_epoch() == 0;
      if (!epoch && position.stage_step < total) continue;
      log_.line(str(stage, ": step ", position.stage_step, ", ", formatted("%.1f", took.count() / static_cast<double>(taken)),
                    " ms a step with its exchanges"));
      taken = 0;
      took = {};
      compare_states(ranks_, *state_);
      if (state_->data().val.size() > 0) static_cast<void>(state_->evaluate_val([this] { wait_for_evaluation(); }));
    }
  }

  // The decoded checkpoint is freed on return. Only the state is kept.
  void load_stage(const std::string& text) {
    const Checkpoint checkpoint = decode_checkpoint(text);
    decide_as(recorded_decisions(checkpoint.manifest));
    state_->load(checkpoint);
  }

  // Starts from the choices that rank 0 knows when a stage begins. A choice that is not offered here is handled as on rank 0.
  void decide_as(DecisionMap known) {
    decisions_.reset();  // before the next one is made: scopes end in the reverse order of their beginnings
    told_.clear();
    decisions_ = std::make_unique<DecisionScope>(DecisionPolicy{
        .measure = !state_->config().deterministic, .known = std::move(known), .ask = [this](const std::string& key) {
          return choice_of(key);
        }});
  }

  // The counterpart of RankLeader::agree_to_stop().
  bool agree_to_stop() {
    std::uint64_t flags = 0;
    while (((flags = ranks_.any(stop_.requested() ? kStopFlag : 0)) & kSaveFlag) != 0) state_->trainer()->gather_state();
    if ((flags & kDecisionsFlag) != 0) told_.merge(decode_decisions(hear(ranks_, RankMessageKind::decisions)));
    if ((flags & kCompareFlag) != 0) compare_states(ranks_, *state_);
    if ((flags & kStopFlag) == 0) return false;
    state_->trainer()->gather_state();
    return true;
  }

  // Rank 0 may still choose ways to compute during the evaluation, also for a smaller last batch that only rank 0 has.
  void wait_for_evaluation() {
    for (RankMessage message = hear(ranks_); message.kind != RankMessageKind::evaluated; message = hear(ranks_)) {
      TESSERA_CHECK(message.kind == RankMessageKind::decisions, InternalError, "ranks: rank 0 sent a message '",
                    static_cast<char>(message.kind), "' in an evaluation");
      told_.merge(decode_decisions(message.text));
    }
  }

  // Rank 0 reaches the same question in the same step. Timing it may raise further questions, and their answers come first.
  std::string choice_of(const std::string& key) {
    for (;;) {
      const auto known = told_.find(key);
      if (known != told_.end()) return known->second;
      told_.merge(decode_decisions(hear(ranks_, RankMessageKind::decisions)));
    }
  }

  Communicator& ranks_;
  StopRequest stop_;
  RankLog& log_;
  std::optional<RunState> state_;
  std::optional<Tf32Products> tf32_;
  DecisionMap told_;
  std::unique_ptr<DecisionScope> decisions_;
};

}  // namespace

RunOutcome follow_rank_0(Communicator& ranks, const StopRequest& stop, RankLog& log) { return Follower(ranks, stop, log).run(); }

}  // namespace tessera
