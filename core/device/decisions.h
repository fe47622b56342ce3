// Choices taken from a clock, such as which algorithm runs one shape of a convolution. Each has a key and a name, so that a run
// can record it before it is used, and a resumed or replayed run takes the same one and never measures again: results keep
// their bytes although timings do not repeat.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>

namespace tessera {

// Floating-point operations below which choosing costs more than a wrong choice.
inline constexpr double kLeastFlopsToMeasure = 4e6;

using DecisionMap = std::map<std::string, std::string>;  // key -> name of the choice

struct DecisionPolicy {
  // false: a key that is not known takes its first candidate, and no clock is read.
  bool measure = false;
  DecisionMap known = {};
  // Taken wherever a candidate has this name, before anything else: for tests and benchmarks of one algorithm.
  std::string forced = {};
  // Told each measured choice before decide() returns it. May throw; the choice is then not taken.
  std::function<void(const std::string& key, const std::string& choice)> on_measured = {};
  // Another process measures for this one: gives its choice, in place of reading a clock. A choice that is not offered here is an
  // Error, since the two would no longer compute the same.
  std::function<std::string(const std::string& key)> ask = {};
};

// Keys that were asked for under one policy.
struct DecisionLog {
  std::set<std::string> replayed;  // known at the start
  std::set<std::string> measured;
  std::set<std::string> forced;
};

// Makes `policy` the process's for its lifetime; the newest scope decides, without one nothing is measured. Not for several
// threads at once.
class DecisionScope {
 public:
  explicit DecisionScope(DecisionPolicy policy);
  ~DecisionScope();
  DecisionScope(const DecisionScope&) = delete;
  DecisionScope& operator=(const DecisionScope&) = delete;

  // What was known at the start and what was measured since.
  const DecisionMap& taken() const;
  const DecisionLog& log() const { return log_; }

 private:
  DecisionPolicy policy_;
  DecisionLog log_;
};

// Choices that do not change any more, in force on this thread alone for its lifetime: they go before every scope of the process,
// and threads with choices of their own do not see each other's. A key that is not known takes its first candidate; no clock is
// read. The newest of a thread decides.
class ThreadDecisions {
 public:
  explicit ThreadDecisions(DecisionMap known);
  ~ThreadDecisions();
  ThreadDecisions(const ThreadDecisions&) = delete;
  ThreadDecisions& operator=(const ThreadDecisions&) = delete;

  // What was known of a key; null where nothing was.
  const std::string* find(const std::string& key) const;
  std::uint64_t epoch() const noexcept { return epoch_; }

 private:
  DecisionMap known_;
  std::uint64_t epoch_;
  const ThreadDecisions* outer_;
};

// Differs between scopes, and is an outer scope's own again when an inner one ends; 0 without one: part of the key of caches
// whose content depends on a decision.
std::uint64_t decision_epoch() noexcept;

// Whether a scope is in force; without one, candidates beyond the first need not be prepared.
bool decisions_active() noexcept;

// Whether the policy in force names a choice, which is then taken where it is offered, however small the work.
bool choice_is_forced() noexcept;

// What decide() is about to do for `key`: candidates that are expensive to prepare are needed only where a clock decides or
// where a name is known.
struct DecisionOutlook {
  bool measured = false;  // a clock decides, here or in another process
  std::string known = {};  // the name that is taken where it is offered
};
DecisionOutlook outlook_of(const std::string& key);

// Index of the candidate to use for `key`. `seconds(i)` runs candidate i once and returns its time; it is called only where
// a clock decides. Candidates take turns, 5 to 15 each, and a later one displaces an earlier one when its median is below 0.97
// of that one's. A known name that is not offered (another instruction set, another library) is warned about, and the first
// candidate is taken. `candidates` must not be empty.
std::size_t decide(const std::string& key, std::span<const std::string> candidates,
                   const std::function<double(std::size_t)>& seconds);

// For `seconds`: how long `run` of candidate `i` takes. Infinitely long where a later candidate than the first finds no memory:
// it is then never chosen, and the first may still fit.
double seconds_of(std::size_t i, const std::function<void()>& run);

// The same as decide() for what is not chosen from a list: the known text of `key`, or what `measure` gives, recorded like a
// choice before it is returned. Empty where the key is not known and nothing may be measured; without a scope it is measured
// every time.
std::optional<std::string> recall_or_measure(const std::string& key, const std::function<std::string()>& measure);

}  // namespace tessera
