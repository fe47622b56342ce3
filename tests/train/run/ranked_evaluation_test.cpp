// Evaluations that the ranks share. Run by mpirun; each rank also evaluates alone.
#include <gtest/gtest.h>

#include "core/support/error.h"
#include "layers/embedding.h"
#include "layers/flatten.h"
#include "layers/linear.h"
#include "layers/sequential.h"
#include "tests/core/comm/ranks.h"
#include "tests/core/io/temporary_folder.h"
#include "tests/support/scopes.h"
#include "train/data/builtin.h"
#include "train/data/loader.h"
#include "train/run/evaluate.h"
#include "train/tasks/classification.h"
#include "train/tasks/next_token.h"

namespace tessera {
namespace {

constexpr std::int64_t kBatch = 8;

// Passes its input on and counts the forward passes.
class Counting final : public Module {
 public:
  std::string_view kind() const override { return "counting"; }
  Value config() const override { return Value::map(); }
  Var forward(const Var& x, const Context&) override {
    ++forwards;
    return x;
  }
  Shape output_shape(const Shape& input, Trace*) const override { return input; }

  std::int64_t forwards = 0;
};

void expect_the_bytes_of_one_process(Module& model, const Subset& split, const Task& task) {
  SCOPED_TRACE(str(split.size(), " samples"));
  Loader alone(split, evaluation_options(kBatch, 0)), shared(split, evaluation_options(kBatch, 1));
  const Evaluation want = evaluate(model, alone, task, DType::f32);
  int done = 0;
  const Evaluation got = evaluate_together(ranks(), model, shared, task, DType::f32, [&] { ++done; });
  EXPECT_EQ(done, 1);
  EXPECT_EQ(got.samples, split.size());
  EXPECT_EQ(got.loss, want.loss);
  EXPECT_EQ(got.metrics, want.metrics);
}

// Evaluates fewer batches than ranks, as many, and more, with and without a smaller last batch.
TEST(RankedEvaluation, OfImagesHasTheBytesOfOneProcess) {
  Sequential model;
  model.add_child("flatten", std::make_unique<Flatten>());
  model.add_child("fc", std::make_unique<Linear>(LinearConfig{.in = kGlyphSide * kGlyphSide, .out = kGlyphClasses}));
  initialize(model, 1);
  GlyphsConfig glyphs;
  glyphs.count = 20;
  glyphs.test_count = 64;
  DataConfig config;
  config.form = glyphs;
  const Subset all = load_data(config, 1).test;
  for (const std::int64_t count : {3, 8, 10, 33, 40, 64}) {
    const Subset some{all.dataset, {all.indices.begin(), all.indices.begin() + count}};
    expect_the_bytes_of_one_process(model, some, Classification());
  }
}

TEST(RankedEvaluation, EachBatchIsOneRanks) {
  Sequential model;
  auto& counting = static_cast<Counting&>(model.add_child("counting", std::make_unique<Counting>()));
  model.add_child("flatten", std::make_unique<Flatten>());
  model.add_child("fc", std::make_unique<Linear>(LinearConfig{.in = kGlyphSide * kGlyphSide, .out = kGlyphClasses}));
  initialize(model, 1);
  GlyphsConfig glyphs;
  glyphs.count = 20;
  glyphs.test_count = 9 * kBatch;
  DataConfig config;
  config.form = glyphs;
  Loader loader(load_data(config, 1).test, evaluation_options(kBatch, 0));
  evaluate_together(ranks(), model, loader, Classification(), DType::f32, [] {});
  std::int64_t all = 0;
  for (const std::string& of_rank : ranks().all_gather(std::to_string(counting.forwards))) {
    all += std::stoll(of_rank);
    EXPECT_LE(std::stoll(of_rank), 9 / ranks().size() + 1);
  }
  EXPECT_EQ(all, 9);
}

TEST(RankedEvaluation, OfTextHasTheBytesOfOneProcess) {
  const testing::VariableScope no_cache("TESSERA_CACHE", "");
  const TemporaryFolder folder;
  std::string text;
  for (int i = 0; i < 900; ++i) text += static_cast<char>('a' + i * i % 23);
  write_file_atomically(real_vfs(), folder / "a.txt", text);
  TextDataConfig config;
  config.files = {"a.txt"};
  config.sequence = 13;
  config.split = {50, 50, 0};
  Embedding scores({.vocabulary = 256, .width = 256});
  initialize(scores, 1);
  expect_the_bytes_of_one_process(scores, config.load(folder.path().string(), 1).val, NextToken());
}

}  // namespace
}  // namespace tessera
