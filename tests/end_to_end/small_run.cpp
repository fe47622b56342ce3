#include "tests/end_to_end/small_run.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "core/config/value.h"
#include "core/support/error.h"
#include "tests/end_to_end/program.h"

namespace tessera::testing {

const char* const kSmallExperiment = R"(
version: 1
name: small
seed: 3
threads: {compute: 2, loader: 2}
data: {name: glyphs, count: 480, test_count: 60, batch: 32, val: 0.1, augment: [{pad_crop: 2}, {flip: horizontal}]}
model:
  name: layers
  layers:
    - {conv2d: {out: 8, kernel: 3, stride: 2, padding: 1, bias: false, name: conv1}}
    - {batch_norm: {name: bn1}}
    - relu
    - {conv2d: {out: 16, kernel: 3, stride: 2, padding: 1, name: conv2}}
    - relu
    - {dropout: {p: 0.2}}
    - global_avg_pool
    - {linear: {out: 10, name: fc}}
optimizer: {name: sgd, lr: 0.05, momentum: 0.9, weight_decay: 5.0e-4}
schedule: {name: cosine, warmup: 5s}
ema: {decay: 0.9}
stages:
  - {name: dense, train: 2e}
  - {name: factorised, factorise: {keep: always, layers: conv2, format: tucker2, ranks: {out: 8, in: 4}}}
  - {name: finetuned, train: 1e, optimizer: {lr: 0.01}}
  - {name: again, factorise: {keep: always, layers: fc, format: svd, ranks: {rank: 4}}, train: 6s}
checkpoint: {every: 4s, keep: 2}
log_every: 3
)";

std::string tensors_of(const std::string& run) {
  std::vector<std::string> parts;
  for (const auto& entry : std::filesystem::directory_iterator(newest_checkpoint(run))) {
    if (entry.path().extension() == ".safetensors") parts.push_back(entry.path().string());
  }
  std::sort(parts.begin(), parts.end());
  EXPECT_GE(parts.size(), 3u) << "model, optimizer and average";
  std::string bytes;
  for (const std::string& part : parts) bytes += std::filesystem::path(part).filename().string() + read_bytes(part);
  return bytes;
}

// Without the size of timing.jsonl, which depends on a clock, and without the hash over the manifest.
static std::string manifest_of(const std::string& checkpoint) {
  const std::string path = checkpoint + "/MANIFEST.json";
  Value manifest = parse_json(read_bytes(path), path);
  Value* const position = manifest.find("position");
  EXPECT_TRUE(position != nullptr && position->erase("timing_bytes"));
  EXPECT_TRUE(manifest.erase("xxh3_128"));
  return to_json(manifest);
}

std::string result_of(const std::string& run) {
  std::string bytes;
  const std::string checkpoint = newest_checkpoint(run);
  for (const std::string& file : {run + "/metrics.jsonl", run + "/report.md", run + "/layers.csv", checkpoint + "/state.json"}) {
    const std::string content = read_bytes(file);
    EXPECT_FALSE(content.empty()) << file;
    bytes += content;
  }
  return bytes + manifest_of(checkpoint) + tensors_of(run);
}

void train_killed_and_resumed(std::vector<std::string> train, const std::string& run, const std::vector<std::string>& places,
                              const std::vector<std::string>& environment) {
  for (const std::string& place : places) {
    const Outcome killed = run_program(train, joined(environment, {str("TESSERA_KILL_AT=", place)}));
    ASSERT_EQ(killed.exit_code, 128 + 9) << place << ": " << killed.output;
    train = {"resume", run};
  }
  const Outcome ended = run_program(train, environment);
  ASSERT_EQ(ended.exit_code, 0) << ended.output;
}

}  // namespace tessera::testing
