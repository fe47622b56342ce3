#include "tests/train/checkpoint/store_invariants.h"

#include <utility>

#include "core/support/error.h"
#include "tests/core/io/faulty_vfs.h"
#include "tests/train/checkpoint/store_fixture.h"

namespace tessera {
namespace {

using Path = std::filesystem::path;

constexpr std::int64_t kNextStep = 90;  // greater than every step that a sweep saves

// A second implementation of the retention rule.
Contents retained(const Contents& contents, const std::set<std::int64_t>& pins) {
  Contents left;
  int unpinned = 0;
  for (auto item = contents.rbegin(); item != contents.rend(); ++item) {
    if (pins.contains(item->first) || unpinned++ < kSweepKeep) left.insert(*item);
  }
  return left;
}

class Check {
 public:
  Check(Vfs& vfs, const Path& folder, const Expectation& expectation) : vfs_(vfs), folder_(folder), expected_(expectation) {}

  void reading() {
    FaultyVfs counter({}, vfs_);
    const CheckpointStore store(counter, folder_);
    newest(store);
    for (const auto& [step, content] : expected_.kept) must_load(store, step, content);
    for (const std::int64_t step : store.steps()) {
      guarded("damaged", [&] {
        for (const std::string& damage : store.load(step).damaged) broken_.push_back(str("damaged: ", damage));
      });
    }
    if (vfs_.exists(folder_ / "latest")) {
      const std::string latest = vfs_.read_file(folder_ / "latest");
      if (!latest.starts_with("step-") || !latest.ends_with("\n")) broken_.push_back(str("latest is torn: '", latest, "'"));
    }
    if (counter.operations() > 0) broken_.push_back(str("reading changed something: ", counter.log().front()));
  }

  void reopening(const RunLock& lock) {
    CheckpointStore store(vfs_, folder_, kSweepKeep);
    store.open_for_writing(lock);
    const SaveResult result = store.save(kNextStep, parts_at(kNextStep), extra_at(kNextStep));
    for (const std::string& warning : result.warnings) broken_.push_back(str("the next save warned: ", warning));
    const std::string wrong = difference(store.load_latest(), kNextStep, kNextStep);
    if (!wrong.empty()) broken_.push_back(str("after the next save: ", wrong));
    for (const std::int64_t step : expected_.pinned) must_load(store, step, expected_.kept.at(step));
    tidiness(store, result.folder.filename().string());
  }

  std::vector<std::string> broken() { return std::move(broken_); }

  template <class Call>
  void guarded(const char* what, Call&& call) {
    try {
      call();
    } catch (const Error& error) {
      broken_.push_back(str(what, ": ", error.what()));
    }
  }

 private:
  // load_latest() must give the newest standing checkpoint or the one being saved. If none stands, its error must say so.
  void newest(const CheckpointStore& store) {
    const bool any = !expected_.standing.empty();
    try {
      const Checkpoint checkpoint = store.load_latest();
      for (const std::string& damage : checkpoint.damaged) broken_.push_back(str("damaged: ", damage));
      const auto& saving = expected_.saving;
      if (saving && difference(checkpoint, saving->step, saving->content).empty()) return;
      const auto last = any ? *expected_.standing.rbegin() : std::pair<const std::int64_t, std::int64_t>(-1, -1);
      const std::string wrong = difference(checkpoint, last.first, last.second);
      if (!wrong.empty()) broken_.push_back(str("the last good checkpoint does not load: ", wrong));
    } catch (const IoError& error) {
      const bool clear = std::string_view(error.what()).find("no intact checkpoint in") != std::string_view::npos;
      if (any || !clear) broken_.push_back(str("the last good checkpoint does not load: ", error.what()));
    }
  }

  void must_load(const CheckpointStore& store, std::int64_t step, std::int64_t content) {
    guarded("a kept checkpoint does not load", [&] {
      const Checkpoint checkpoint = store.load(step);
      const bool may_be_new = expected_.saving && expected_.saving->step == step;
      if (may_be_new && difference(checkpoint, step, expected_.saving->content).empty()) return;
      const std::string wrong = difference(checkpoint, step, content);
      if (!wrong.empty()) broken_.push_back(str("a kept checkpoint is not as it was saved: step ", step, ": ", wrong));
    });
  }

  void tidiness(const CheckpointStore& store, const std::string& saved) {
    const std::vector<DirectoryEntry> entries = vfs_.list(folder_);
    for (const DirectoryEntry& entry : entries) {
      if (entry.name != "latest" && !entry.name.starts_with("step-")) broken_.push_back(str("left over: ", entry.name));
    }
    const std::vector<std::int64_t> steps = store.steps();
    if (entries.size() != steps.size() + 1) broken_.push_back(str(entries.size(), " entries for ", steps.size(), " steps"));
    if (steps.size() > kSweepKeep + expected_.most_pins) broken_.push_back(str(steps.size(), " checkpoints are left"));
    if (vfs_.read_file(folder_ / "latest") != str(saved, '\n')) broken_.push_back("latest names another checkpoint");
    for (const std::int64_t step : steps) guarded("a remaining checkpoint does not load", [&] { store.load(step); });
  }

  Vfs& vfs_;
  const Path& folder_;
  const Expectation& expected_;
  std::vector<std::string> broken_;
};

}  // namespace

Expectation expectation_of(Vfs& vfs, const Path& folder, std::optional<SaveAction> saving) {
  Expectation expectation;
  std::set<std::int64_t> pins;
  const CheckpointStore store(vfs, folder);
  for (const std::int64_t step : store.steps()) {
    const Checkpoint checkpoint = store.load(step);
    expectation.standing[step] = checkpoint.manifest.at("data").at("samples").as_int() / 128;
    pins = read_manifest(vfs, checkpoint.folder).pinned;
  }
  Contents after = expectation.standing;
  if (saving) after[saving->step] = saving->content;
  const Contents left = retained(after, saving ? saving->pins : pins);
  for (const auto& [step, content] : expectation.standing) {
    if (!left.contains(step)) continue;
    expectation.kept[step] = content;
    if (pins.contains(step) && (!saving || saving->pins.contains(step))) expectation.pinned.insert(step);
  }
  if (saving) pins.insert(saving->pins.begin(), saving->pins.end());
  expectation.most_pins = pins.size();
  expectation.saving = std::move(saving);
  return expectation;
}

std::vector<std::string> broken_invariants(Vfs& vfs, const Path& folder, const RunLock& lock, const Expectation& expectation) {
  Check check(vfs, folder, expectation);
  check.guarded("reading failed", [&] { check.reading(); });
  check.guarded("reopening failed", [&] { check.reopening(lock); });
  return check.broken();
}

}  // namespace tessera
