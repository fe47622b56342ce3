// The layers that veto_bench judges.
#pragma once

#include <cstdint>
#include <memory>

#include "core/nn/module.h"
#include "core/shape.h"
#include "layers/conv2d.h"
#include "layers/linear.h"
#include "layers/tucker2_conv2d.h"

namespace tessera::bench {

// A layer that is judged, and the batch at which it is judged.
struct Judged {
  const char* name;
  std::unique_ptr<Module> (*dense)();
  Shape input;
  std::int64_t batch;
  Tucker2Ranks ranks = {};  // of the compressed layer, in agreement()
};

inline std::unique_ptr<Module> linear_1024() { return std::make_unique<Linear>(LinearConfig{.in = 1024, .out = 1024}); }
inline std::unique_ptr<Module> linear_256() { return std::make_unique<Linear>(LinearConfig{.in = 256, .out = 256}); }
template <std::int64_t kChannels>
std::unique_ptr<Module> conv() {
  return std::make_unique<Conv2d>(Conv2dConfig{.in = kChannels, .out = kChannels, .padding = {1, 1}, .bias = false});
}

inline const Judged kAgainstItself[]{{"linear 1024, batch 1", linear_1024, {1, 1024}, 1},
                                     {"linear 256, batch 32", linear_256, {1, 256}, 32},
                                     {"conv 64, 14x14, batch 1", conv<64>, {1, 14, 14, 64}, 1},
                                     {"conv 16, 32x32, batch 32", conv<16>, {1, 32, 32, 16}, 32}};

// Ordered from about as fast to clearly faster. A Tucker-2 layer computes with its composed weight where that is faster, so none
// is much slower than dense.
inline const Judged kAgreed[]{{"conv 16, 32x32, ranks 12", conv<16>, {1, 32, 32, 16}, 32, {12, 12}},
                              {"conv 32, 16x16, ranks 24", conv<32>, {1, 16, 16, 32}, 32, {24, 24}},
                              {"conv 64, 14x14, ranks 48", conv<64>, {1, 14, 14, 64}, 8, {48, 48}},
                              {"conv 256, 14x14, ranks 192", conv<256>, {1, 14, 14, 256}, 1, {192, 192}},
                              {"conv 128, 14x14, ranks 96", conv<128>, {1, 14, 14, 128}, 8, {96, 96}},
                              {"conv 64, 14x14, ranks 32", conv<64>, {1, 14, 14, 64}, 8, {32, 32}},
                              {"conv 128, 14x14, ranks 64", conv<128>, {1, 14, 14, 128}, 8, {64, 64}},
                              {"conv 128, 14x14, ranks 32", conv<128>, {1, 14, 14, 128}, 8, {32, 32}},
                              {"conv 128, 7x7, ranks 48", conv<128>, {1, 7, 7, 128}, 1, {48, 48}},
                              {"conv 256, 14x14, ranks 64", conv<256>, {1, 14, 14, 256}, 1, {64, 64}}};

}  // namespace tessera::bench
