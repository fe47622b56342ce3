// eval: its numbers equal the table's and the run's, and it only accepts changes that leave the trained network alone.
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "core/config/value.h"
#include "core/io/vfs.h"
#include "core/support/error.h"
#include "core/support/text.h"
#include "tests/end_to_end/trained_run.h"
#include "tests/support/image_files.h"
#include "train/report/table.h"

namespace tessera::testing {
namespace {

namespace fs = std::filesystem;

// Steps 1-12, the factorisation (step 13), steps 14-25. Step 19 ends an epoch in the middle of the stage with averages.
constexpr const char* kBlocks = R"(
deterministic: true
data: {name: glyphs, count: 200, test_count: 50, batch: 30, val: 0.1}
optimizer: {name: sgd, lr: 0.3}
micro_batch: 15
stages:
  - {name: dense, train: 2e}
  - {name: tucker, factorise: {keep: always, layers: conv2, ranks: {out: 4, in: 4}}, train: 2e, ema: {decay: 0.9}}
checkpoint: {every: 1e, keep: 10}
report: {latency: {batch: [1], repeats: 5}}
)";

class Eval : public TrainedRun {
 protected:
  static void SetUpTestSuite() { train_shared(tiny_experiment(kBlocks)); }

  static Outcome eval(const std::vector<std::string>& more, const std::string& path) {
    return run_program(joined({"eval", path}, more));
  }
  static Value json(std::vector<std::string> more) {
    more.emplace_back("--json");
    const Outcome outcome = eval(more, run());
    EXPECT_EQ(outcome.exit_code, 0) << outcome.output;
    return parse_json(outcome.output, "output");
  }
  static void expect(const std::vector<std::string>& more, int code, const std::string& part, const std::string& path) {
    expect_outcome(eval(more, path), code, part);
  }
  static void expect(const std::vector<std::string>& more, int code, const std::string& part) { expect(more, code, part, run()); }

  // The evaluation that the run recorded at a step.
  static Value recorded(std::int64_t step) {
    const std::string text = read_bytes(run() + "/metrics.jsonl");
    for (std::size_t begin = 0; begin < text.size(); begin = text.find('\n', begin) + 1) {
      const Value row = parse_json(text.substr(begin, text.find('\n', begin) - begin), "metrics");
      if (row.at("step") == Value(step) && row.find("val_loss") != nullptr) return row;
    }
    return {};
  }
};

TEST_F(Eval, AgreesWithTheTable) {
  const std::vector<std::string> runs{run()};
  const Table table = make_table(real_vfs(), runs, nullptr);
  ASSERT_EQ(table.rows.size(), 2u);
  EXPECT_EQ(json({"--at", "dense"}).at("top1").as_double(), table.rows[0].values[0]);
  EXPECT_EQ(json({}).at("top1").as_double(), table.rows[1].values[0]);
  EXPECT_EQ(json({"--at", "tucker"}).at("top1").as_double(), table.rows[1].values[0]);
}

TEST_F(Eval, AgreesWithTheRunAlsoOnMovingAverages) {
  for (const std::int64_t step : {6, 12, 19, 25}) {
    const Value said = json({"--at", std::to_string(step), "--split", "val"});
    const Value row = recorded(step);
    ASSERT_FALSE(row.is_null()) << step;
    EXPECT_EQ(said.at("top1").as_double(), row.at("val_accuracy").as_double()) << step;
    EXPECT_EQ(said.at("loss").as_double(), row.at("val_loss").as_double()) << step;
    EXPECT_EQ(said.at("averaged").as_bool(), step == 19) << step;
    EXPECT_EQ(said.at("stage_done").as_bool(), step == 12 || step == 25) << step;
  }
}

TEST_F(Eval, BestIsTheNewestStagesBestOnVal) {
  const Value best = json({"--at", "best", "--split", "val"});
  const double first = recorded(19).at("val_accuracy").as_double();
  const double last = recorded(25).at("val_accuracy").as_double();
  EXPECT_EQ(best.at("step").as_int(), first >= last ? 19 : 25);
  EXPECT_EQ(best.at("top1").as_double(), std::max(first, last));
}

TEST_F(Eval, ClassesAndMatrixAddUp) {
  const Value said = json({"--split", "train"});
  const auto& classes = said.at("classes").as_list();
  const auto& matrix = said.at("confusion").as_list();
  ASSERT_EQ(classes.size(), 10u);
  ASSERT_EQ(matrix.size(), 10u);
  std::int64_t correct = 0;
  std::int64_t samples = 0;
  for (std::size_t i = 0; i < classes.size(); ++i) {
    const auto& row = matrix[i].as_list();
    const std::int64_t sum = std::accumulate(row.begin(), row.end(), std::int64_t{0},
                                             [](std::int64_t total, const Value& count) { return total + count.as_int(); });
    EXPECT_EQ(sum, classes[i].at("samples").as_int());
    EXPECT_EQ(row[i], classes[i].at("correct"));
    EXPECT_EQ(classes[i].at("accuracy").as_double(), row[i].as_double() / static_cast<double>(sum));
    correct += row[i].as_int();
    samples += sum;
  }
  EXPECT_EQ(said.at("samples").as_int(), 180);
  EXPECT_EQ(samples, 180);
  EXPECT_EQ(said.at("top1").as_double(), static_cast<double>(correct) / 180.0);
  EXPECT_GE(said.at("top5").as_double(), said.at("top1").as_double());
}

TEST_F(Eval, TakesOnlyWhatCannotChangeWhatWasLearnt) {
  const Value plain = json({});
  const Value other = json({"data.batch=7", "threads.loader=1", "threads.compute=2", "device=cpu", "precision=f32"});
  EXPECT_EQ(other.at("confusion"), plain.at("confusion"));
  const std::string allowed = "may set data.root, data.batch, threads.compute, threads.loader, device, precision";
  for (const char* refused : {"optimizer.lr=1", "data.count=10", "~data.batch", "data={batch: 7}", "nosuch=1", "seed=2"}) {
    expect({refused}, 2, allowed);
  }
  expect({"data.batch=0"}, 2, "data.batch: is 0");
  expect({"device=cuda:63"}, 2, "device is cuda:63, but ");
}

TEST_F(Eval, ForPeopleHasTablesAndTheNextCommand) {
  expect({}, 0, run() + ": stage tucker, its end (step 25); split test, 50 samples\nloss ");
  expect({}, 0, "\nclass     n  correct  accuracy\ncircle    5  ");
  expect({}, 0, "\nconfusion matrix: rows are the true classes, columns the predicted ones\n          circle  square  ");
  expect({"--at", "19"}, 0, ": stage tucker, step 19, moving averages; split test");
  expect({}, 0, "\nnext: tessera table " + run() + "\n");
}

TEST_F(Eval, PredictionsHaveARowPerSample) {
  const std::string path = *folder_ / "p.csv";
  expect({"--split", "val", "--predictions", path, "--confusion", *folder_ / "m.csv"}, 0, "wrote " + path + "\nwrote ");
  const Value said = json({"--split", "val"});
  EXPECT_EQ(read_bytes(*folder_ / "m.csv").substr(0, 12), "true,circle,");
  const auto rows = parse_csv(read_bytes(path), path);
  EXPECT_EQ(rows[0], (std::vector<std::string>{"index", "label", "predicted", "correct", "probability"}));
  ASSERT_EQ(rows.size(), 21u);
  std::int64_t correct = 0;
  for (std::size_t i = 1; i < rows.size(); ++i) {
    EXPECT_EQ(rows[i][3] == "1", rows[i][1] == rows[i][2]);
    correct += rows[i][3] == "1";
    if (i > 1) {
      EXPECT_LT(std::stoi(rows[i - 1][0]), std::stoi(rows[i][0])) << "not in the order of the data set";
    }
  }
  EXPECT_GT(std::stoi(rows.back()[0]), 20) << "an index is that of the data set which val is held out from";
  EXPECT_EQ(said.at("top1").as_double(), static_cast<double>(correct) / 20.0);
}

TEST_F(Eval, ProbabilitiesSumToOneAndTheGreatestWasPredicted) {
  const std::string path = *folder_ / "q.csv";
  expect({"--predictions", path, "--probabilities"}, 0, "wrote " + path + "\n");
  const auto rows = parse_csv(read_bytes(path), path);
  ASSERT_EQ(rows[0].size(), 15u);
  EXPECT_EQ(rows[0][5], "p:circle");
  for (std::size_t i = 1; i < rows.size(); ++i) {
    double sum = 0;
    std::size_t greatest = 5;
    for (std::size_t column = 5; column < 15; ++column) {
      sum += std::stod(rows[i][column]);
      if (std::stod(rows[i][column]) > std::stod(rows[i][greatest])) greatest = column;
    }
    EXPECT_NEAR(sum, 1.0, 1e-5);
    EXPECT_EQ(rows[0][greatest], "p:" + rows[i][2]);
    EXPECT_EQ(rows[i][greatest], rows[i][4]);
  }
}

TEST_F(Eval, RefusesWhatIsNotThere) {
  expect({"--at", "nosuch"}, 2, "eval: no checkpoint 'nosuch'; there are: 6 12=dense");
  expect({"--split", "all"}, 2, "--split");
  expect({"--probabilities"}, 2, "name it with --predictions");
  expect({"--predictions", *folder_ / "none/p.csv"}, 2, "--predictions: there is no folder ");
  expect({}, 2, "no run folder ", *folder_ / "none");
  const std::string empty = copy_of_run("empty");
  for (const auto& entry : fs::directory_iterator(empty + "/checkpoints")) fs::remove_all(entry.path());
  expect({}, 2, "has no checkpoint yet", empty);
}

TEST_F(Eval, ADamagedCheckpointIsPassedOverOrNamed) {
  const std::string damaged = copy_of_run("damaged");
  write_bytes(damaged + "/checkpoints/step-00000025/model.safetensors", "x");
  expect({}, 0, "passed over a damaged checkpoint", damaged);
  expect({}, 0, "stage tucker, step 19", damaged);
  expect({"--at", "tucker"}, 1, "step-00000025/model.safetensors: file has 1 bytes", damaged);
}

// A class name and a file name that need quotes in CSV.
constexpr const char* kPhotos = R"(
version: 1
name: photos
deterministic: true
threads: {compute: 1, loader: 0}
data: {name: image-folder, root: photos, val: 0, resize: 12, crop: 8, batch: 2}
model: {name: mlp, hidden: [4], classes: 2}
stages:
  - {name: dense, train: 1e}
)";

TEST_F(Eval, NamesOfFoldersAreQuoted) {
  const TemporaryFolder folder;
  const std::string odd = "a \"b\", c";
  const std::vector<std::string> names{"photos/train/" + odd + "/1.png",  "photos/train/" + odd + "/2.png",
                                       "photos/train/dog/1.png",          "photos/train/dog/2.png",
                                       "photos/test/" + odd + "/x,y.png", "photos/test/dog/1.png"};
  for (const std::string& name : names) {
    fs::create_directories(fs::path(folder / name).parent_path());
    write_bytes(folder / name, encode_png(12, 12, pattern(12, 12)));
  }
  write_bytes(folder / "photos.yaml", kPhotos);
  const std::vector<std::string> cache{"TESSERA_CACHE=" + (folder / "cache")};
  const Outcome trained = run_program({"train", folder / "photos.yaml", "--runs", folder / "runs"}, cache);
  ASSERT_EQ(trained.exit_code, 0) << trained.output;
  const std::string run = folder / "runs/photos/1";
  const Outcome outcome =
      run_program({"eval", run, "--predictions", folder / "p.csv", "--confusion", folder / "m.csv", "--probabilities"}, cache);
  ASSERT_EQ(outcome.exit_code, 0) << outcome.output;
  const auto rows = parse_csv(read_bytes(folder / "p.csv"), "p.csv");
  ASSERT_EQ(rows.size(), 3u);
  EXPECT_EQ(rows[0],
            (std::vector<std::string>{"index", "path", "label", "predicted", "correct", "probability", "p:" + odd, "p:dog"}));
  EXPECT_EQ(rows[1][1], folder / ("photos/test/" + odd + "/x,y.png"));
  EXPECT_EQ(rows[1][2], odd);
  EXPECT_EQ(parse_csv(read_bytes(folder / "m.csv"), "m.csv")[0], (std::vector<std::string>{"true", odd, "dog"}));

  write_bytes(folder / "photos/train/dog/1.png", encode_png(12, 13, pattern(12, 13)));
  expect_outcome(run_program({"eval", run}, cache), 2, "the training data, which gives statistics and names, is not the run's");
  EXPECT_EQ(run_program({"eval", run, "data.root=/nosuch"}, cache).exit_code, 2);
}

}  // namespace
}  // namespace tessera::testing
