// Every piece of a checkpoint is needed: a run resumed without one of them ends with other bytes or says what it lacks. Without
// this the tests of killed runs would prove little.
#include <gtest/gtest.h>

#include <csignal>
#include <filesystem>
#include <functional>

#include "core/io/vfs.h"
#include "core/support/error.h"
#include "tests/end_to_end/program.h"
#include "tests/end_to_end/small_run.h"
#include "train/checkpoint/run_lock.h"
#include "train/checkpoint/store.h"

namespace tessera::testing {
namespace {

using Change = std::function<void(Checkpoint&)>;

struct Piece {
  const char* name;
  Change drop;
  // If set, the resume must refuse with this in its message. Otherwise it must end with other bytes.
  const char* refusal = nullptr;
  Change prepare = {};  // for both runs, if the small run lacks the piece
  int exit_code = 1;  // of a refusal
};

Value& position(Checkpoint& checkpoint) { return *checkpoint.manifest.find("position"); }

Change fill(const char* part, const char* tensor, double value = 0) {
  return [=](Checkpoint& checkpoint) { checkpoint.parts.at(part).tensors.at(tensor).fill(value); };
}
Change fill_part(const char* part) {
  return [=](Checkpoint& checkpoint) {
    for (auto& [path, tensor] : checkpoint.parts.at(part).tensors) tensor.fill(0);
  };
}
Change erase_part(const char* part) {
  return [=](Checkpoint& checkpoint) { checkpoint.parts.erase(part); };
}
Change erase_key(const char* key) {
  return [=](Checkpoint& checkpoint) { ASSERT_TRUE(checkpoint.manifest.erase(key)); };
}
Change place(const char* key, const Value& value) {
  return [=](Checkpoint& checkpoint) { position(checkpoint).set(key, value); };
}
Change both(const Change& first, const Change& second) {
  return [=](Checkpoint& checkpoint) { first(checkpoint), second(checkpoint); };
}

// Masks half of the weights. The optimiser keeps them at zero from the next step on.
void add_mask(Checkpoint& checkpoint) {
  State& model = checkpoint.parts.at("model");
  const Tensor mask = Tensor::full({model.tensors.at("conv2.weight").numel() / 8}, 255, DType::u8);  // one bit per weight
  mask.slice(0, 0, mask.dim(0) / 2).fill(0);
  model.tensors["conv2.weight.mask"] = mask;
}

// Plants a choice that no clock makes again.
void plant_decision(Checkpoint& checkpoint) { checkpoint.manifest.find("decisions")->find("decisions")->set("planted", "nhwc"); }

class StateInventory : public ::testing::Test {
 protected:
  void SetUp() override { write_bytes(folder_ / "small.yaml", kSmallExperiment); }

  // Makes a run that ends at `place`, whose newest checkpoint is then changed. No clock decides, so that the bytes differ only
  // by what is dropped.
  void kill_at(const std::string& place, const std::vector<std::string>& overrides = {}) {
    const std::vector<std::string> arguments{"train",
                                             folder_ / "small.yaml",
                                             "--runs",
                                             folder_ / "killed",
                                             "checkpoint.every=4s",
                                             "checkpoint.async=false",
                                             "deterministic=true"};
    const Outcome killed = run_program(joined(arguments, overrides), {"TESSERA_KILL_AT=" + place});
    ASSERT_EQ(killed.exit_code, 128 + SIGKILL) << killed.output;
  }

  // Resumes the killed run from its newest checkpoint after `change` has edited it.
  Outcome resume(const std::string& name, const Change& change, const std::string& pins_dropped = {}) {
    const std::string run = folder_ / name;
    std::filesystem::copy(folder_ / "killed/small/1", run, std::filesystem::copy_options::recursive);
    std::filesystem::remove(run + "/decisions.json");  // only the checkpoint shall hold them
    {
      const RunLock lock(run);
      CheckpointStore store(real_vfs(), run + "/checkpoints", 100);
      store.open_for_writing(lock);
      Checkpoint checkpoint = store.load_latest();
      if (change) change(checkpoint);
      if (!pins_dropped.empty()) {
        for (const std::int64_t step : store.steps()) store.unpin(step);
      }
      store.save(checkpoint.step, checkpoint.parts, checkpoint.manifest);
    }
    return run_program({"resume", run});
  }

  std::string result(const std::string& name) {
    const std::string run = folder_ / name;
    std::string bytes = result_of(run) + read_bytes(run + "/decisions.json");
    for (const DirectoryEntry& entry : real_vfs().list(run + "/checkpoints")) bytes += entry.name + '\n';
    return bytes;
  }

  void expect_needed(const Piece& piece) {
    SCOPED_TRACE(piece.name);
    const std::string name = piece.name;
    const Outcome whole = resume(name + " whole", piece.prepare);
    ASSERT_EQ(whole.exit_code, 0) << whole.output;
    const Outcome dropped = resume(name + " dropped", piece.prepare ? both(piece.prepare, piece.drop) : piece.drop);
    if (piece.refusal != nullptr) {
      expect_outcome(dropped, piece.exit_code, piece.refusal);
      return;
    }
    ASSERT_EQ(dropped.exit_code, 0) << dropped.output;
    EXPECT_FALSE(result(name + " dropped") == result(name + " whole"));
  }

  TemporaryFolder folder_;
};

TEST_F(StateInventory, SavingAgainWhatWasReadChangesNothing) {
  kill_at("step:23");
  ASSERT_EQ(run_program({"resume", folder_ / "killed/small/1"}).exit_code, 0);
  const std::string straight = result_of(folder_ / "killed/small/1");
  std::filesystem::remove_all(folder_ / "killed");
  kill_at("step:23");
  ASSERT_EQ(resume("again", {}).exit_code, 0);
  EXPECT_TRUE(result_of(folder_ / "again") == straight);
}

TEST_F(StateInventory, EveryPieceInTheMiddleOfTraining) {
  // The newest checkpoint is of step 20. Epochs end at 13 and 26, and every 3 steps a line is logged. Batch norms keep the
  // averages of their statistics: remeasuring them at each evaluation would leave the old ones unused.
  kill_at("step:23", {"ema.statistics=0"});
  const Piece pieces[]{
      {"weights", fill("model", "conv2.weight")},
      {"batch norm's mean", fill("model", "bn1.running_mean", 3)},
      {"batch norm's variance", fill("model", "bn1.running_var", 9)},
      {"momentum", fill_part("optimizer")},
      {"optimizer", erase_part("optimizer"), "the part 'optimizer' is missing"},
      {"average's values", fill_part("hook.ema")},
      {"average", erase_part("hook.ema"), "the part 'hook.ema' is missing"},
      {"model", erase_part("model"), "the part 'model' is missing"},
      {"loss of the interval", fill("trainer", "loss_sum")},
      {"steps of the interval",
       [](Checkpoint& checkpoint) { checkpoint.parts.at("trainer").meta.set("loss_count", std::int64_t{1}); }},
      {"place in schedule and data", place("stage_step", std::int64_t{18})},
      {"place in the random numbers", place("global_step", std::int64_t{18})},
      {"length of the metrics", place("metrics_bytes", std::int64_t{0})},
      {"data", [](Checkpoint& checkpoint) { checkpoint.manifest.set("data", "0"); }, "the training data changed"},
      {"mask", [](Checkpoint& checkpoint) { checkpoint.parts.at("model").tensors.erase("conv2.weight.mask"); }, nullptr,
       add_mask},
      {"best accuracy", place("best_accuracy", -1.0), nullptr, place("best_accuracy", 1.0)},
      {"decisions", erase_key("decisions"), nullptr, plant_decision},
  };
  for (const Piece& piece : pieces) expect_needed(piece);
}

TEST_F(StateInventory, EveryPieceOfAdmm) {
  kill_at("step:24", {"stages[0].admm={layers: conv2, ranks: {out: 8, in: 4}, keep: always, rho: 0.5, update: 5s}"});
  const auto meta = [](const char* key, const Value& value) {
    return [=](Checkpoint& checkpoint) { checkpoint.parts.at("hook.admm").meta.set(key, value); };
  };
  const Piece pieces[]{
      {"low-rank copies", fill("hook.admm", "z.conv2")},
      {"dual variables", fill("hook.admm", "u.conv2")},
      {"rho", meta("rho", 0.9)},
      {"that updates have stopped", meta("stopped", false), nullptr, meta("stopped", true)},
      {"admm", erase_part("hook.admm"), "the part 'hook.admm' is missing"},
      {"layers that were settled", erase_key("results"), "its admm pass has not run"},
  };
  for (const Piece& piece : pieces) expect_needed(piece);
}

TEST_F(StateInventory, EveryPieceOfPruning) {
  kill_at("step:23", {"stages[0].prune={sparsity: {target: 0.8, end: 26s, every: 2s}}"});  // inside the ramp
  const auto other_beginning = [](Checkpoint& checkpoint) {
    for (Value& initial : checkpoint.parts.at("hook.prune").meta.find("initial")->as_list()) initial = 0.7;
  };
  const Piece pieces[]{
      {"sparsities at the stage's begin", other_beginning},
      {"pruning", erase_part("hook.prune"), "the part 'hook.prune' is missing"},
      {"masks", [](Checkpoint& checkpoint) { checkpoint.parts.at("model").tensors.erase("conv2.weight.mask"); }},
  };
  for (const Piece& piece : pieces) expect_needed(piece);
}

TEST_F(StateInventory, EveryPieceOfSrSte) {
  kill_at("step:23", {"stages[0].prune={pattern: n_m, sr_ste: {freeze: 25s}}"});  // before the masks freeze
  const auto dropped = [](Checkpoint& checkpoint) { ASSERT_TRUE(checkpoint.parts.at("hook.prune").meta.erase("n_m")); };
  for (const Piece& piece : {Piece{"N and M", dropped, "the saved state is not of sr_ste"},
                             Piece{"its part", erase_part("hook.prune"), "the part 'hook.prune' is missing"}}) {
    expect_needed(piece);
  }
}

TEST_F(StateInventory, EveryPieceOfRigl) {
  kill_at("step:23", {"stages[0].rigl={sparsity: 0.8, every: 3s, end: 26s}"});
  const auto no_mask = [](Checkpoint& checkpoint) { checkpoint.parts.at("model").tensors.erase("conv2.weight.mask"); };
  for (const Piece& piece : {Piece{"masks", no_mask, "conv2.weight has no mask in the saved state"},
                             Piece{"its part", erase_part("hook.rigl"), "the part 'hook.rigl' is missing"}}) {
    expect_needed(piece);
  }
}

TEST_F(StateInventory, EveryPieceOfDistillation) {
  kill_at("step:36", {"stages[2].distill={from: dense, weight: 0.9}"});
  const Piece pieces[]{
      {"teacher", fill_part("teacher.dense")},
      {"its part", erase_part("teacher.dense"), "the part 'teacher.dense' is missing"},
      {"its tree", erase_key("teachers"), "the checkpoint does not hold the network of stage dense", {}, 2},
  };
  for (const Piece& piece : pieces) expect_needed(piece);
}

TEST_F(StateInventory, EveryPieceAfterAPass) {
  kill_at("step:46");  // in the last stage, after the factorisation at step 41; the newest is of step 45
  const Piece pieces[]{
      {"stage", place("stage", std::int64_t{2}), "layers \"fc\" match no conv2d or linear", {}, 2},
      {"passes that have run", place("stage_ready", false), "layers \"fc\" match no conv2d or linear", {}, 2},
      {"history", erase_key("history")},
      {"factored layers",
       [](Checkpoint& checkpoint) {
         const std::string tree = to_json(*checkpoint.manifest.find("model"));
         ASSERT_NE(tree.find("tucker2_conv2d"), std::string::npos) << tree;
         checkpoint.manifest.erase("model");
       },
       "required key 'model' is missing"},
  };
  for (const Piece& piece : pieces) expect_needed(piece);
}

TEST_F(StateInventory, AStagesEnd) {
  kill_at("save:26");
  expect_needed({"end of the stage", place("stage_done", false), "the part 'hook.ema' is missing"});
}

TEST_F(StateInventory, PinnedCheckpointsStay) {
  kill_at("step:46");
  ASSERT_EQ(resume("kept", {}).exit_code, 0);
  ASSERT_EQ(resume("unpinned", {}, "all").exit_code, 0);
  EXPECT_TRUE(std::filesystem::exists(folder_ / "kept/checkpoints/step-00000026"));
  EXPECT_FALSE(std::filesystem::exists(folder_ / "unpinned/checkpoints/step-00000026"));
}

TEST_F(StateInventory, AdamsMomentsAndStep) {
  kill_at("step:23", {"optimizer={name: adamw, lr: 0.003}"});
  const auto fill_slots = [](const std::string& slot) {
    return [=](Checkpoint& checkpoint) {
      int filled = 0;
      for (auto& [path, tensor] : checkpoint.parts.at("optimizer").tensors) {
        if (path.ends_with('.' + slot)) tensor.fill(0), ++filled;
      }
      ASSERT_GT(filled, 0) << slot;
    };
  };
  for (const char* slot : {"exp_avg", "exp_avg_sq", "updates"}) expect_needed({slot, fill_slots(slot)});
}

}  // namespace
}  // namespace tessera::testing
