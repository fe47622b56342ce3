#include "tests/train/checkpoint/crash_sweep.h"

#include <set>
#include <utility>

#include "core/support/error.h"
#include "tests/core/io/crash_vfs.h"
#include "tests/train/checkpoint/store_fixture.h"
#include "tests/train/checkpoint/store_invariants.h"

namespace tessera {
namespace {

constexpr const char* kFolder = "/checkpoints";
constexpr int kLeftoverStride = 7;  // recovers from every seventh crash of the last save

const std::vector<SaveAction> kScript{{1, 1, {}}, {2, 2, {}}, {3, 3, {3}}, {4, 4, {3}}, {4, 40, {3}}, {5, 5, {3}}, {6, 6, {}}};
const SaveAction kRecoverySave{80, 80, {}};

class Sweep {
 public:
  Sweep(const Sabotage& sabotage, const std::string& until) : sabotage_(sabotage), until_(until) {}

  CrashSweep run() {
    CrashVfs disk;
    run_on(disk, "", kScript);
    for (std::size_t i = 0; i < left_over_.size(); ++i) run_on(left_over_[i], str("recovery ", i, ": "), {kRecoverySave});
    return std::move(result_);
  }

 private:
  void run_on(CrashVfs& disk, const std::string& title, const std::vector<SaveAction>& script) {
    try {
      const std::unique_ptr<Vfs> vfs = sabotage_(disk);
      CheckpointStore store(*vfs, kFolder, kSweepKeep);
      watch(disk, title + "open", std::nullopt);
      store.open_for_writing(lock_);
      std::set<std::int64_t> pins;
      for (const SaveAction& action : script) {
        for (const std::int64_t step : pins) store.unpin(step);
        for (const std::int64_t step : pins = action.pins) store.pin(step);
        watch(disk, str(title, "save of step ", action.step), action);
        store.save(action.step, parts_at(action.content), extra_at(action.content));
      }
      watch(disk, title + "end", std::nullopt);
      cut(disk, "none");
    } catch (const IoError& error) {
      result_.violations.push_back(str(title, phase_, " failed: ", error.what()));
    }
    disk.before_change = nullptr;
  }

  void watch(CrashVfs& disk, const std::string& phase, std::optional<SaveAction> saving) {
    phase_ = phase;
    expectation_ = expectation_of(disk, kFolder, std::move(saving));
    disk.before_change = [&](const std::string& operation) { cut(disk, operation); };
  }

  void cut(CrashVfs& disk, const std::string& operation) {
    if (ended_) return;
    const std::string where = str(phase_, ", before operation ", result_.operations++, " (", operation, "), ");
    each_crash(disk, static_cast<std::uint64_t>(result_.operations), [&](const std::string& name, CrashVfs& left) {
      ++result_.points;
      for (const std::string& broken : broken_invariants(left, kFolder, lock_, expectation_)) {
        result_.violations.push_back(str(where, name, ": ", broken));
        ended_ = ended_ || broken.find(until_) != std::string::npos;
      }
    });
    const bool last_save = expectation_.saving && expectation_.saving->content == kScript.back().content;
    if (last_save && result_.operations % kLeftoverStride == 0) left_over_.push_back(disk.image(Survival::everything, 0));
  }

  const Sabotage& sabotage_;
  const std::string& until_;
  bool ended_ = false;
  TemporaryFolder run_;
  RunLock lock_{run_.path()};
  Expectation expectation_;
  std::string phase_;
  std::vector<CrashVfs> left_over_;
  CrashSweep result_;
};

}  // namespace

CrashSweep sweep_crashes(const Sabotage& sabotage, const std::string& until) { return Sweep(sabotage, until).run(); }

}  // namespace tessera
