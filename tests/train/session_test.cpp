// What a run in this process says of itself while it goes on.
#include "train/session.h"

#include <gtest/gtest.h>

#include <sstream>

#include "tests/core/io/forwarding_vfs.h"
#include "tests/core/io/temporary_folder.h"
#include "train/config/yaml.h"
#include "train/status.h"

namespace tessera {
namespace {

// Five steps an epoch. No stage logs before its last step, which for `long` is the end of its second epoch.
constexpr const char* kStages = R"(
version: 1
name: x
threads: {compute: 1, loader: 0}
data: {name: glyphs, count: 200, test_count: 32, batch: 32, val: 0.2}
model:
  name: layers
  layers:
    - {conv2d: {out: 4, kernel: 3, stride: 4, name: conv1}}
    - {conv2d: {out: 4, kernel: 3, name: conv2}}
    - global_avg_pool
    - {linear: {out: 10, name: fc}}
stages:
  - {name: short, train: 1e}
  - {name: factor, factorise: {keep: always, layers: conv2, ranks: {out: 2, in: 2}}}
  - {name: long, train: 2e}
checkpoint: {every: 3s, async: false}
log_every: 1000
deterministic: true
)";

// Notes what every status says of the loss.
class StatusReader final : public ForwardingVfs {
 public:
  StatusReader() : ForwardingVfs(real_vfs()) {}
  void replace(const Path& from, const Path& to) override {
    below_.replace(from, to);
    if (to.filename() != "status.json") return;
    const RunStatus status = load_status(below_, to);
    if (status.state == "training") losses[status.stage].push_back(status.loss);
  }
  std::map<std::string, std::vector<double>> losses;
};

TEST(Session, ShowsNoLossOfTheStageBefore) {
  const TemporaryFolder runs;
  StatusReader vfs;
  const RunFolder folder = RunFolder::create(vfs, runs.path().string(), "x");
  std::ostringstream out;
  SessionOptions options;
  options.out = &out;
  const Experiment experiment = parse_experiment(parse_yaml(kStages, "x.yaml"));
  ASSERT_EQ(Session::start(vfs, experiment, kStages, folder, options).run(), RunOutcome::finished);

  const std::string text = out.str();
  EXPECT_NE(text.find("short epoch 1  loss "), std::string::npos) << text;
  EXPECT_NE(text.find("long epoch 1  val accuracy "), std::string::npos) << text;
  EXPECT_NE(text.find("long epoch 2  loss "), std::string::npos) << text;

  ASSERT_FALSE(vfs.losses["short"].empty());
  EXPECT_GT(vfs.losses["short"].back(), 0.0);
  ASSERT_FALSE(vfs.losses["factor"].empty());
  for (const double loss : vfs.losses["factor"]) EXPECT_EQ(loss, 0.0) << "a factorisation has none";
  const std::vector<double>& losses = vfs.losses["long"];
  ASSERT_GE(losses.size(), 3u) << "saves at steps 3 and 6";
  EXPECT_EQ(losses[0], 0.0);
  EXPECT_EQ(losses[1], 0.0);
  EXPECT_GT(losses.back(), 0.0);
}

}  // namespace
}  // namespace tessera
