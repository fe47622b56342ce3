#include "tests/end_to_end/tiny_runs.h"

#include <csignal>

#include "core/io/safetensors.h"
#include "core/support/error.h"
#include "core/support/text.h"

namespace tessera::testing {

TinyRuns::TinyRuns(const char* rest, const TinyOptions& options) {
  write_bytes(folder_ / "tiny.yaml", tiny_experiment(rest, options));
}

std::vector<std::string> TinyRuns::train(const std::string& runs, const std::vector<std::string>& more) const {
  return joined({"train", folder_ / "tiny.yaml", "--runs", folder_ / runs}, more);
}

std::map<std::string, Tensor> TinyRuns::tensors(const std::string& run) {
  const std::string file = newest_checkpoint(run) + "/model.safetensors";
  std::map<std::string, Tensor> copies;
  for (const auto& [name, tensor] : decode_safetensors(read_bytes(file), file).tensors) copies[name] = tensor.clone();
  return copies;
}

std::int64_t TinyRuns::kept(const std::string& run) {
  std::int64_t count = 0;
  for (const float value : tensors(run).at("conv2.weight").to_vector<float>()) count += value != 0 ? 1 : 0;
  return count;
}

std::vector<Value> TinyRuns::rows_of(const std::string& run, const std::string& key) {
  std::vector<Value> rows;
  for (const std::string& line : split(read_bytes(run + "/metrics.jsonl"), '\n')) {
    if (line.empty()) continue;
    const Value row = parse_json(line, "metrics.jsonl");
    if (const Value* const found = row.find(key)) rows.push_back(*found);
  }
  return rows;
}

void TinyRuns::expect_survives(std::initializer_list<const char*> places, const std::vector<std::string>& changes) const {
  expect_done(run_program(train("straight", changes)));
  std::vector<std::string> next = train("killed", changes);
  for (const char* const place : places) {
    const Outcome killed = run_program(next, {str("TESSERA_KILL_AT=", place)});
    ASSERT_EQ(killed.exit_code, 128 + SIGKILL) << place << ": " << killed.output;
    next = {"resume", run_in("killed")};
  }
  expect_done(run_program(next));
  EXPECT_TRUE(tensors_of(run_in("killed")) == tensors_of(run_in("straight")));
  EXPECT_EQ(read_bytes(run_in("killed") + "/metrics.jsonl"), read_bytes(run_in("straight") + "/metrics.jsonl"));
}

void TinyRuns::train_where_nothing_is_faster(const std::vector<std::string>& changes) const {
  expect_done(run_program(train("timed", changes)));
  Value file = parse_json(read_bytes(run_in("timed") + "/decisions.json"), "decisions.json");
  for (Value::Entry& entry : file.find("decisions")->as_map()) {
    if (entry.key.starts_with("keep.")) entry.value = "not-faster dense_ms 2 compressed_ms 3 ratio 0.7 low 0.6 high 0.8";
  }
  write_bytes(folder_ / "forged.json", to_json(file));
  expect_done(run_program(train("forged", joined(changes, {"--decisions", folder_ / "forged.json"}))));
}

}  // namespace tessera::testing
