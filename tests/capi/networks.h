// Small runs on glyphs, and the network of a checkpoint in C and in C++.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "core/config/value.h"
#include "core/support/error.h"
#include "include/tessera.h"
#include "tests/core/io/temporary_folder.h"
#include "train/config/yaml.h"
#include "train/run/session.h"

namespace tessera::capi::testing {

// Two convolutions, the second large enough for a choice of algorithms, and what `stages` make of them.
inline std::string experiment(const std::string& stages) {
  return R"(version: 1
name: x
threads: {compute: 1, loader: 0}
data: {name: glyphs, count: 60, test_count: 20, batch: 20, val: 0}
model:
  name: layers
  layers:
    - {conv2d: {out: 16, kernel: 3, stride: 2, padding: 1, name: conv1}}
    - {batch_norm: {name: bn1}}
    - relu
    - {conv2d: {out: 32, kernel: 3, padding: 1, name: conv2}}
    - relu
    - global_avg_pool
    - {linear: {out: 10, name: fc}}
checkpoint: {every: 1s, async: false}
deterministic: true
stages: )" +
         stages;
}
inline const std::string kDense = "[{name: dense, train: 3s}]";
inline const std::string kFactored =
    "[{name: dense, train: 2s}, {name: factored, train: 1s, factorise: {keep: always, layers: conv2, ranks: {out: 8, in: 8}}}]";
inline const std::string kSparse =
    "[{name: pruned, train: 2s, prune: {layers: conv2, sparsity: {target: 0.8, begin: 0s, end: 1s, every: 1s}}}, "
    "{name: sparse, train: 1s, sparsify: {keep: always}}]";

// The folder of a finished run below `folder`.
inline std::string trained(const std::filesystem::path& folder, const std::string& text) {
  const Experiment read = parse_experiment(parse_yaml(text, "x.yaml"));
  const RunFolder run = RunFolder::create(real_vfs(), folder.string(), "x");
  EXPECT_EQ(Session::start(real_vfs(), read, load_inputs(real_vfs(), read.config), text, run, {}).run(), RunOutcome::finished);
  return run.path();
}
// Trained once in a program.
inline const std::string& dense_run() {
  static const TemporaryFolder folder;
  static const std::string run = trained(folder.path(), experiment(kDense));
  return run;
}

// The ids of the process's threads.
inline std::set<std::string> threads_of_process() {
  std::set<std::string> threads;
  for (const auto& thread : std::filesystem::directory_iterator("/proc/self/task")) threads.insert(thread.path().filename());
  return threads;
}
// The threads that have started since `before` and stay: `count` of them, or what there is after ten seconds. A thread that
// ends, such as one that a library's smaller team leaves out, is listed for a moment longer.
inline std::set<std::string> threads_since(const std::set<std::string>& before, std::size_t count) {
  for (int wait = 0;; ++wait) {
    std::set<std::string> threads = threads_of_process();
    for (const std::string& thread : before) threads.erase(thread);
    if (threads.size() == count || wait == 1000) return threads;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
}

// Loaded, and released at the end.
class Loaded {
 public:
  explicit Loaded(const std::string& path, std::int32_t threads = 1, const char* precision = nullptr) {
    const tessera_options options{sizeof(options), threads, nullptr, precision};
    EXPECT_EQ(tessera_load(path.c_str(), &options, &network_), TESSERA_OK) << tessera_last_error();
  }
  ~Loaded() { tessera_free(network_); }
  Loaded(const Loaded&) = delete;
  Loaded& operator=(const Loaded&) = delete;

  tessera_network* get() const { return network_; }
  Value description() const {
    const char* json = nullptr;
    EXPECT_EQ(tessera_describe(network_, &json), TESSERA_OK) << tessera_last_error();
    return parse_json(json, "tessera_describe");
  }

 private:
  tessera_network* network_ = nullptr;
};

// A buffer with its shape, as a program in C has it.
template <class T>
struct Buffer {
  std::vector<std::int64_t> shape;
  std::vector<T> values;
  const char* name = nullptr;

  Buffer(std::vector<std::int64_t> sizes, T value) : shape(std::move(sizes)) {
    std::int64_t count = 1;
    for (const std::int64_t size : shape) count *= size;
    values.assign(static_cast<std::size_t>(count), value);
  }
  tessera_tensor tensor() {
    constexpr tessera_dtype kDtype = sizeof(T) == 1   ? tessera_dtype{TESSERA_UINT8}
                                     : sizeof(T) == 8 ? tessera_dtype{TESSERA_INT64}
                                                      : tessera_dtype{TESSERA_FLOAT32};
    return {name, kDtype, static_cast<std::int32_t>(shape.size()), shape.data(), values.data()};
  }
};

// Images whose pixels differ, of the network's input.
inline Buffer<float> some_images(std::int64_t batch) {
  Buffer<float> images({batch, 28, 28, 1}, 0);
  for (std::size_t i = 0; i < images.values.size(); ++i) images.values[i] = static_cast<float>((i * 7919) % 251) / 125.0f - 1.0f;
  return images;
}

// What the C functions say of it.
template <class T>
std::vector<float> scores_of(const Loaded& network, Buffer<T>& input, std::int64_t classes = 10) {
  Buffer<float> scores({input.shape.front(), classes}, -1);
  const tessera_tensor in = input.tensor(), out = scores.tensor();
  EXPECT_EQ(tessera_run(network.get(), &in, 1, &out, 1), TESSERA_OK) << tessera_last_error();
  return scores.values;
}

}  // namespace tessera::capi::testing
