#include "bench/op_options.h"

#include "core/support/error.h"

namespace tessera::bench {

OpCases chosen_cases(const OpOptions& options) {
  const auto wanted = [&](const std::string& op, const std::string& shape) {
    return str(op, ' ', shape).find(options.only) != std::string::npos;
  };
  OpCases cases;
  for (const ProductShape& shape : product_shapes()) {
    if (!wanted("matmul", to_string(shape))) continue;
    cases.dense.emplace_back([=] { return product_case(shape); });
    cases.products.push_back(shape);
  }
  for (const ConvShape& shape : conv_shapes()) {
    if (!wanted("conv2d", to_string(shape))) continue;
    for (const ConvPass pass : passes_of(shape)) cases.dense.emplace_back([=] { return conv_case(pass, shape); });
  }
  for (const MemoryMaker& maker : memory_cases(options.megabytes)) {
    if (wanted(maker.op, maker.shape)) cases.memory.push_back(maker);
  }
  TESSERA_CHECK(!cases.dense.empty() || !cases.memory.empty(), ConfigError, "op_bench: --only '", options.only,
                "' is in no op and shape; they read like 'conv2d ", to_string(conv_shapes().front()), "' and 'relu ",
                memory_cases(options.megabytes).front().shape, "'");
  return cases;
}

}  // namespace tessera::bench
