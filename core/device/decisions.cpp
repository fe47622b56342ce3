#include "core/device/decisions.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <limits>
#include <numeric>
#include <vector>

#include "core/device/turn_order.h"
#include "core/support/error.h"
#include "core/support/log.h"

namespace tessera {
namespace {

constexpr int kLeastRounds = 5;
constexpr int kMostRounds = 15;
constexpr double kEnough = 0.06;  // seconds of the fastest candidate, over all rounds, after which timing ends
constexpr double kHopeless = 1.3;  // a candidate slower than this times the lowest median gets no further round
// A smaller gain is noise. The first candidate wins near-ties, because it is the default wherever nothing is measured.
constexpr double kDisplaces = 0.97;

// The scopes in force. The last one decides.
struct InForce {
  DecisionPolicy* policy;
  DecisionLog* log;
  std::uint64_t id;
};
std::vector<InForce> in_force;
std::atomic<std::uint64_t> last_id{0};
std::atomic<std::uint64_t> epoch{0};  // the id of the last one in force

thread_local const ThreadDecisions* of_thread = nullptr;  // the newest scope of this thread

void set_epoch() { epoch = in_force.empty() ? 0 : in_force.back().id; }

std::optional<std::size_t> find(std::span<const std::string> candidates, const std::string& name) {
  const auto found = std::find(candidates.begin(), candidates.end(), name);
  if (found == candidates.end()) return std::nullopt;
  return static_cast<std::size_t>(found - candidates.begin());
}

// The times of one candidate, one per round.
struct Timings {
  std::vector<double> seconds;
  bool out = false;  // no further round is spent on it

  double median() const {
    std::vector<double> sorted = seconds;
    std::ranges::nth_element(sorted, sorted.begin() + static_cast<std::ptrdiff_t>(sorted.size() / 2));
    return sorted[sorted.size() / 2];
  }
  double total() const { return std::accumulate(seconds.begin(), seconds.end(), 0.0); }
};

// Drops hopeless candidates. False once another round would tell nothing new.
bool keep_timing(std::vector<Timings>& all) {
  const auto& best = *std::ranges::min_element(all, {}, &Timings::median);
  const double lowest = best.median();
  for (Timings& timings : all) timings.out = timings.out || timings.median() > kHopeless * lowest;
  return best.total() < kEnough && std::ranges::count(all, false, &Timings::out) > 1;
}

// Candidates run in turn, so that drift of the machine affects all alike. The median decides, since a processor that shares its
// power speeds up at times as it slows down at others.
std::size_t fastest(std::size_t count, const std::function<double(std::size_t)>& seconds) {
  std::vector<Timings> all(count);
  for (std::size_t i = 0; i < count; ++i) seconds(i);  // warm-up
  for (int round = 1; round <= kMostRounds; ++round) {
    for (const std::int64_t side : turn_order(round, static_cast<std::int64_t>(count))) {
      const auto i = static_cast<std::size_t>(side);
      if (!all[i].out) all[i].seconds.push_back(seconds(i));
    }
    if (round >= kLeastRounds && !keep_timing(all)) break;
  }
  std::size_t chosen = 0;
  for (std::size_t i = 1; i < count; ++i) {
    if (all[i].median() < kDisplaces * all[chosen].median()) chosen = i;
  }
  return chosen;
}

void tell(const std::string& key, const std::string& choice) { log(LogLevel::debug, str("decisions: ", key, ": ", choice)); }

std::string names_of(std::span<const std::string> candidates) {
  std::string all;
  for (const std::string& name : candidates) all += (all.empty() ? "" : ", ") + name;
  return all;
}

const std::string* recall(const InForce& scope, const std::string& key) {
  const auto known = scope.policy->known.find(key);
  if (known == scope.policy->known.end()) return nullptr;
  if (!scope.log->measured.contains(key)) scope.log->replayed.insert(key);
  return &known->second;
}

void record(const InForce& scope, const std::string& key, const std::string& choice) {
  if (scope.policy->on_measured) scope.policy->on_measured(key, choice);
  scope.policy->known.emplace(key, choice);
  scope.log->measured.insert(key);
}

// The index of the known name; the first candidate if the name is not offered here.
std::size_t offered(const std::string& key, const std::string& known, std::span<const std::string> candidates) {
  if (const auto index = find(candidates, known)) return *index;
  log_warning(str("decisions: ", key, " was decided as '", known, "', which is not offered here; '", candidates[0], "' of ",
                  names_of(candidates), " is used and bytes may differ"));
  return 0;
}

std::size_t asked(const InForce& scope, const std::string& key, std::span<const std::string> candidates) {
  const std::string choice = scope.policy->ask(key);
  const auto index = find(candidates, choice);
  TESSERA_CHECK(index, Error, "decisions: ", key, " was decided as '", choice,
                "' by another process, which is not offered here; ", names_of(candidates), " are");
  record(scope, key, choice);
  return *index;
}

std::size_t decide_under(const InForce& scope, const std::string& key, std::span<const std::string> candidates,
                         const std::function<double(std::size_t)>& seconds) {
  if (const auto forced = find(candidates, scope.policy->forced)) {
    scope.log->forced.insert(key);
    return *forced;
  }
  if (const std::string* known = recall(scope, key)) return offered(key, *known, candidates);
  if (!scope.policy->measure || candidates.size() == 1) return 0;
  if (scope.policy->ask) return asked(scope, key, candidates);
  const std::size_t chosen = fastest(candidates.size(), seconds);
  record(scope, key, candidates[chosen]);
  return chosen;
}

}  // namespace

DecisionScope::DecisionScope(DecisionPolicy policy) : policy_(std::move(policy)) {
  in_force.push_back({&policy_, &log_, ++last_id});
  set_epoch();
}

DecisionScope::~DecisionScope() {
  std::erase_if(in_force, [&](const InForce& scope) { return scope.policy == &policy_; });
  set_epoch();
}

const DecisionMap& DecisionScope::taken() const { return policy_.known; }

ThreadDecisions::ThreadDecisions(DecisionMap known) : known_(std::move(known)), epoch_(++last_id), outer_(of_thread) {
  of_thread = this;
}

ThreadDecisions::~ThreadDecisions() { of_thread = outer_; }

const std::string* ThreadDecisions::find(const std::string& key) const {
  const auto found = known_.find(key);
  return found == known_.end() ? nullptr : &found->second;
}

std::uint64_t decision_epoch() noexcept { return of_thread != nullptr ? of_thread->epoch() : epoch.load(); }

bool decisions_active() noexcept { return of_thread != nullptr || !in_force.empty(); }

bool choice_is_forced() noexcept { return of_thread == nullptr && !in_force.empty() && !in_force.back().policy->forced.empty(); }

DecisionOutlook outlook_of(const std::string& key) {
  if (of_thread != nullptr) {
    const std::string* const known = of_thread->find(key);
    return {.known = known == nullptr ? std::string() : *known};
  }
  if (in_force.empty()) return {};
  const DecisionPolicy& policy = *in_force.back().policy;
  if (!policy.forced.empty()) return {.measured = policy.measure, .known = policy.forced};
  const auto known = policy.known.find(key);
  if (known != policy.known.end()) return {.known = known->second};
  return {.measured = policy.measure};
}

std::size_t decide(const std::string& key, std::span<const std::string> candidates,
                   const std::function<double(std::size_t)>& seconds) {
  TESSERA_CHECK(!candidates.empty(), InternalError, "decide: nothing to choose from for ", key);
  if (!decisions_active()) return 0;
  std::size_t chosen = 0;
  if (of_thread == nullptr) {
    chosen = decide_under(in_force.back(), key, candidates, seconds);
  } else if (const std::string* const known = of_thread->find(key)) {
    chosen = offered(key, *known, candidates);
  }
  tell(key, candidates[chosen]);
  return chosen;
}

double seconds_of(std::size_t i, const std::function<void()>& run) {
  const auto start = std::chrono::steady_clock::now();
  try {
    run();
  } catch (const OutOfMemoryError&) {
    if (i == 0) throw;
    return std::numeric_limits<double>::infinity();
  }
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

std::optional<std::string> recall_or_measure(const std::string& key, const std::function<std::string()>& measure) {
  if (of_thread != nullptr) {
    const std::string* const known = of_thread->find(key);
    return known == nullptr ? std::nullopt : std::optional(*known);
  }
  if (in_force.empty()) return measure();
  const InForce scope = in_force.back();
  if (const std::string* known = recall(scope, key)) {
    tell(key, *known);
    return *known;
  }
  if (!scope.policy->measure) return std::nullopt;
  std::string text = scope.policy->ask ? scope.policy->ask(key) : measure();
  tell(key, text);
  record(scope, key, text);
  return text;
}

}  // namespace tessera
