#include "train/run/status.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <ctime>

#include "core/config/value.h"
#include "core/support/error.h"
#include "tests/core/io/temporary_folder.h"

namespace tessera {
namespace {

RunStatus training() {
  RunStatus status;
  status.state = "training";
  return status;
}

TEST(Status, RoundTripAddsWhoWroteItAndWhen) {
  const TemporaryFolder folder;
  const std::string path = (folder.path() / "status.json").string();
  RunStatus status;
  status.state = "training";
  status.stage = "dense";
  status.stage_step = 3;
  status.stage_steps = 10;
  status.global_step = 13;
  status.loss = 0.1;
  status.best = 0.75;
  status.last_checkpoint_step = 12;
  status.last_checkpoint_time = 1700000000;
  const std::int64_t before = std::time(nullptr);
  save_status(real_vfs(), path, status);
  const RunStatus loaded = load_status(real_vfs(), path);
  EXPECT_EQ(loaded.state, "training");
  EXPECT_EQ(loaded.stage, "dense");
  EXPECT_EQ(loaded.stage_step, 3);
  EXPECT_EQ(loaded.stage_steps, 10);
  EXPECT_EQ(loaded.global_step, 13);
  EXPECT_EQ(loaded.loss, 0.1);
  EXPECT_EQ(loaded.metric, "accuracy");
  EXPECT_EQ(loaded.best, 0.75);
  EXPECT_EQ(loaded.last_checkpoint_step, 12);
  EXPECT_EQ(loaded.last_checkpoint_time, 1700000000);
  EXPECT_GE(loaded.time, before);
  EXPECT_EQ(loaded.pid, getpid());
  EXPECT_FALSE(loaded.host.empty());
  EXPECT_TRUE(is_alive(loaded));
  EXPECT_EQ(state_now(loaded), "training");
}

TEST(Status, BeforeTheFirstLossThereIsNone) {
  const TemporaryFolder folder;
  const std::string path = (folder.path() / "status.json").string();
  save_status(real_vfs(), path, training());
  EXPECT_TRUE(parse_json(real_vfs().read_file(path), path).at("loss").is_null());
  EXPECT_EQ(load_status(real_vfs(), path).loss, std::nullopt);
}

TEST(Status, AProcessThatEndedIsNotAlive) {
  const TemporaryFolder folder;
  const std::string path = (folder.path() / "status.json").string();
  save_status(real_vfs(), path, training());
  RunStatus status = load_status(real_vfs(), path);
  const pid_t child = fork();
  if (child == 0) _exit(0);
  ASSERT_EQ(waitpid(child, nullptr, 0), child);
  status.pid = child;
  EXPECT_FALSE(is_alive(status));
  EXPECT_EQ(state_now(status), "killed");
}

TEST(Status, NothingIsKnownOfProcessesElsewhere) {
  const TemporaryFolder folder;
  const std::string path = (folder.path() / "status.json").string();
  save_status(real_vfs(), path, training());
  RunStatus status = load_status(real_vfs(), path);
  status.host += "-other";
  EXPECT_FALSE(is_alive(status));
  EXPECT_EQ(state_now(status), "unknown");
}

TEST(Status, AStateNobodyWritesIsRefused) {
  const TemporaryFolder folder;
  const std::string path = (folder.path() / "status.json").string();
  write_file_atomically(real_vfs(), path, R"({"state": "trainign"})");
  EXPECT_THROW(load_status(real_vfs(), path), ConfigError);
}

}  // namespace
}  // namespace tessera
