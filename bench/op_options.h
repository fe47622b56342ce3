// What op_bench is asked to measure, and where its results go.
#pragma once

#include "bench/arguments.h"
#include "bench/cases/dense_cases.h"
#include "bench/cases/memory_cases.h"

namespace tessera::bench {

struct OpOptions {
  CommonOptions common = {};
  std::int64_t megabytes = 256;
  TorchOptions torch{.python = {}, .script = {}, .sweep_runs = 2};  // without a python no rows of PyTorch
  std::string only = {};
};

struct OpCases {
  std::vector<std::function<DenseCase()>> dense;
  std::vector<ProductShape> products;  // those of `dense` that PyTorch is a rival of too
  std::vector<MemoryMaker> memory;
};

// Those whose op and shape, with a space between them, contain options.only; none is made yet. Throws ConfigError without any.
OpCases chosen_cases(const OpOptions& options);

}  // namespace tessera::bench
