#include "train/run/rank_follower.h"

#include <memory>
#include <optional>
#include <utility>

#include "core/support/error.h"
#include "train/run/decisions_file.h"
#include "train/run/environment.h"
#include "train/run/rank_leader.h"
#include "train/run/rank_messages.h"

namespace tessera {
namespace {

class Follower {
 public:
  Follower(Communicator& ranks, const StopRequest& stop) : ranks_(ranks), stop_(stop) {}

  RunOutcome run() {
    for (;;) {
      RankMessage message = hear(ranks_);
      switch (message.kind) {
        case RankMessageKind::threads: static_cast<void>(fair_threads(ranks_)); break;
        case RankMessageKind::run: begin(message.text); break;
        case RankMessageKind::stage: train_stage(std::move(message.text)); break;
        case RankMessageKind::finished: return RunOutcome::finished;
        case RankMessageKind::stopped: return RunOutcome::stopped;
        case RankMessageKind::decisions:
        case RankMessageKind::evaluated:
          throw InternalError(str("ranks: rank 0 sent a message '", static_cast<char>(message.kind), "' outside of a stage"));
      }
    }
  }

 private:
  // The counterpart of RankLeader::begin().
  void begin(const std::string& resolved) {
    const Experiment experiment = parse_experiment(parse_json(resolved, "rank 0"));
    const ExperimentConfig& config = experiment.config;
    set_compute_threads(config.threads.compute);
    state_.emplace(config, load_data(config.data, static_cast<std::uint64_t>(config.seed)), ranks_);
    compare_keys(ranks_, machine_of_rank(config), "the program or machine");
    compare_keys(ranks_, state_->data_keys(), "the data");
  }

  void train_stage(std::string text) {
    TESSERA_CHECK(state_, InternalError, "ranks: rank 0 began a stage before the run");
    load_stage(std::exchange(text, {}));
    compare_models(ranks_, state_->model());
    const std::int64_t total = state_->stage_steps();
    state_->begin_training();
    const Position& position = state_->position();
    while (position.stage_step < total) {
      if (agree_to_stop()) return;
      state_->step();
      static_cast<void>(state_->trainer()->take_rows());  // rank 0 logs its own, which are the same
      const bool epoch = position.stage_step % state_->steps_per_epoch() == 0;
      if (!epoch && position.stage_step < total) continue;
      compare_models(ranks_, state_->model());
      if (state_->data().val.size() > 0) static_cast<void>(state_->evaluate_val([this] { wait_for_evaluation(); }));
    }
  }

  // Nothing of what was told is kept but the state.
  void load_stage(const std::string& text) {
    const Checkpoint checkpoint = decode_checkpoint(text);
    decide_as(recorded_decisions(checkpoint.manifest));
    state_->load(checkpoint);
  }

  // What rank 0 knows when a stage begins; a name that is not offered here is taken as rank 0 takes it.
  void decide_as(DecisionMap known) {
    decisions_.reset();  // before the next one: scopes end in the opposite order of their beginnings
    told_.clear();
    decisions_ = std::make_unique<DecisionScope>(DecisionPolicy{
        .measure = !state_->config().deterministic, .known = std::move(known), .ask = [this](const std::string& key) {
          return choice_of(key);
        }});
  }

  // The counterpart of RankLeader::agree_to_stop().
  bool agree_to_stop() {
    const std::uint64_t flags = ranks_.any(stop_.requested() ? kStopFlag : 0);
    if ((flags & kDecisionsFlag) != 0) told_.merge(decode_decisions(hear(ranks_, RankMessageKind::decisions)));
    return (flags & kStopFlag) != 0;
  }

  // Rank 0 may still choose ways to compute, also for a smaller batch that it alone has.
  void wait_for_evaluation() {
    for (RankMessage message = hear(ranks_); message.kind != RankMessageKind::evaluated; message = hear(ranks_)) {
      TESSERA_CHECK(message.kind == RankMessageKind::decisions, InternalError, "ranks: rank 0 sent a message '",
                    static_cast<char>(message.kind), "' in an evaluation");
      told_.merge(decode_decisions(message.text));
    }
  }

  // Rank 0 comes to the same question in the same step. What it times may ask further ones, whose answers come first.
  std::string choice_of(const std::string& key) {
    for (;;) {
      const auto known = told_.find(key);
      if (known != told_.end()) return known->second;
      told_.merge(decode_decisions(hear(ranks_, RankMessageKind::decisions)));
    }
  }

  Communicator& ranks_;
  StopRequest stop_;
  std::optional<RunState> state_;
  DecisionMap told_;
  std::unique_ptr<DecisionScope> decisions_;
};

}  // namespace

RunOutcome follow_rank_0(Communicator& ranks, const StopRequest& stop) { return Follower(ranks, stop).run(); }

}  // namespace tessera
