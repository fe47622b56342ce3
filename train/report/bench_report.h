// `tessera bench`: a network on this machine's clock, layer by layer, at every batch and number of threads asked. docs/bench.md
// defines every number.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "compress/timing/layer_times.h"
#include "core/config/fields.h"
#include "train/report/bench_network.h"

namespace tessera {

// One batch size on one number of threads, or on a GPU.
struct BenchPart {
  std::int64_t batch = 1;
  std::int64_t threads = 1;  // 0 on a GPU
  std::vector<LayerTiming> rows;  // layers in the order of the forward, the network last
};

struct BenchReport {
  std::string target;
  std::string state;
  std::string setup;  // of setup_text()
  std::string gpu = {};  // its name; "" on the CPU
  Shape input;  // of one sample
  Phase phase = Phase::inference;
  DType compute = DType::f32;
  bool tf32 = false;
  std::int64_t rounds = 0;
  std::vector<BenchPart> parts;

  void fields(Fields& f);
};

// Where one part is timed, as where_timed() says it.
std::string where_timed(const BenchReport& report, const BenchPart& part);

// `before` is told of each part before it is timed. Every algorithm is chosen by the clock, as for `tessera table`; nothing is
// written down.
BenchReport run_bench(BenchNetwork network, const BenchOptions& options, const std::function<void(const std::string&)>& before);

std::string to_text(const BenchReport& report);
std::string to_csv(const BenchReport& report);
Value to_value(const BenchReport& report);

}  // namespace tessera
