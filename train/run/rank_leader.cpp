#include "train/run/rank_leader.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <utility>

#include "core/support/error.h"
#include "core/support/host.h"
#include "core/support/log.h"
#include "train/experiment.h"
#include "train/run/broken_images.h"
#include "train/run/environment.h"
#include "train/run/rank_messages.h"
#include "train/run/rank_timings.h"

namespace tessera {
namespace {

// Steps between two comparisons of the ranks, as TESSERA_COMPARE_RANKS sets them; 0 if it is not set.
std::int64_t asked_comparisons() {
  const char* const asked = std::getenv("TESSERA_COMPARE_RANKS");
  if (asked == nullptr || *asked == '\0') return 0;
  const std::string_view text(asked);
  std::int64_t steps = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), steps);
  TESSERA_CHECK(error == std::errc() && end == text.data() + text.size() && steps > 0, ConfigError, "TESSERA_COMPARE_RANKS is '",
                text, "'; needs a number of steps, 1 or more");
  return steps;
}

}  // namespace

void refuse_for_ranks(const Communicator& ranks, const ExperimentConfig& config) {
  if (ranks.size() == 1) return;
  if (resolve_device(config.device).is_cuda()) {
    const auto synchronises = [](const StageConfig& stage) { return stage.training.sync_batch_norm.value_or(false); };
    const auto stage = std::ranges::find_if(config.stages, synchronises);
    TESSERA_CHECK(stage == config.stages.end(), ConfigError, "sync_batch_norm of stage ", stage->name,
                  " is true, which several ranks cannot do on GPUs: leave it out or set device: cpu");
  }
  TESSERA_CHECK(
      !skips_bad_images(write(config)), ConfigError,
      "data.on_bad_image is skip, which several ranks cannot do: each would know only the broken images that it has met");
}

// What must be equal on all ranks. Values that every rank computes for itself may differ in the last bit on another processor.
Value machine_of_rank(const ExperimentConfig& config) {
  Value machine = describe_environment(config);
  machine.erase("host");
  machine.erase("omp_wait_policy");  // it changes timings, not bytes
  return machine;
}

void compare_states(Communicator& ranks, const RunState& state) {
  compare_models(ranks, state.model());
  compare_parts(ranks, state.trainer()->shared_state());
}

RankLeader::RankLeader(Communicator& ranks) : ranks_(ranks), compare_every_(alone() ? 0 : asked_comparisons()) {}

std::int64_t RankLeader::compute_threads() {
  if (alone()) return 0;
  tell(ranks_, RankMessageKind::threads);
  return fair_threads(ranks_);
}

void RankLeader::begin(const RunState& state, const Value& resolved, const RunFolder& folder) {
  if (alone()) return;
  Value::List logs;
  for (int rank = 0; rank < ranks_.size(); ++rank) {
    logs.emplace_back(std::filesystem::absolute(folder.rank_log(rank)).string());
  }
  Value run = Value::map();
  run.set("config", resolved);
  run.set("logs", Value::list(std::move(logs)));
  tell(ranks_, RankMessageKind::run, to_json(run));
  // Rank 0 has loaded its data. It joins the collective calls with which the other ranks take turns to load theirs.
  static_cast<void>(first_ranks(ranks_, host_name()));
  ranks_.barrier();
  compare_keys(ranks_, machine_of_rank(state.config()), "the program or machine");
  compare_keys(ranks_, state.data_keys(), "the data");
  timers_ = ranks_that_time(ranks_, state.config());
}

void RankLeader::time_layers(std::span<const RankTiming> timings, const TimingOptions& options, const RankClock& clock) {
  for (const std::vector<TimingShare>& round : timing_rounds(timings, timers_)) {
    tell(ranks_, RankMessageKind::times, encode_round(round, options));
    DecisionMap own;
    std::exception_ptr failed;  // such as a requested stop; thrown after the others have answered
    const auto attempt = [&failed](const auto& action) {
      try {
        action();
      } catch (const RankFailed&) {
        throw;
      } catch (...) {
        if (!failed) failed = std::current_exception();
      }
    };
    attempt([&] {
      for (const TimingShare& share : round) {
        if (share.rank != 0) continue;
        for (const RankTiming& timing : share.timings) own[timing.key] = clock.time(timing);
      }
    });
    const std::vector<std::string> answers = ranks_.all_gather(encode_answer(own));
    for (std::size_t rank = 0; rank < answers.size(); ++rank) {
      attempt([&] { clock.record(read_answer(answers[rank], static_cast<int>(rank))); });
    }
    if (failed) std::rethrow_exception(failed);
  }
}

void RankLeader::begin_stage(const RunState& state, const DecisionMap& decisions) {
  if (alone()) return;
  untold_.clear();
  tell(ranks_, RankMessageKind::stage, encode_checkpoint(state.manifest(), state.parts(), decisions));
  compare_models(ranks_, state.model());
}

bool RankLeader::agree_to_stop(bool asked, RunState& state) {
  if (alone()) return asked;
  const std::int64_t step = state.position().global_step;
  const bool compares = compare_every_ > 0 && step % compare_every_ == 0;
  const std::uint64_t flags =
      ranks_.any((asked ? kStopFlag : 0) | (untold_.empty() ? 0 : kDecisionsFlag) | (compares ? kCompareFlag : 0));
  if ((flags & kDecisionsFlag) != 0) tell(ranks_, RankMessageKind::decisions, encode_decisions(std::exchange(untold_, {})));
  if (compares) {
    compare_states(ranks_, state);
    log(LogLevel::debug, str("ranks: the same before step ", step));
  }
  if ((flags & kStopFlag) == 0) return false;
  state.trainer()->gather_state();
  return gathered_ = true;
}

void RankLeader::measured(const std::string& key, const std::string& choice) {
  if (alone()) return;
  if (together_) {
    tell(ranks_, RankMessageKind::decisions, encode_decisions({{key, choice}}));
  } else {
    untold_[key] = choice;
  }
}

void RankLeader::gather_state(StageTrainer& trainer) {
  if (alone() || std::exchange(gathered_, false)) return;
  static_cast<void>(ranks_.any(kSaveFlag));
  trainer.gather_state();
}

void RankLeader::evaluated() {
  if (!alone()) tell(ranks_, RankMessageKind::evaluated);
}

void RankLeader::compare(const RunState& state) {
  if (!alone()) compare_states(ranks_, state);
}

void RankLeader::end(bool finished) {
  if (!alone()) tell(ranks_, finished ? RankMessageKind::finished : RankMessageKind::stopped);
}

}  // namespace tessera
