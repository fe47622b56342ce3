// Text for runs of small language models.
#pragma once

#include <string>
#include <string_view>

#include "core/support/error.h"

namespace tessera::testing {

// A GPT on the files a.txt and b.txt beside it, whose runs lie in gpt/.
inline constexpr const char* kSmallGpt = R"(
version: 1
name: gpt
seed: 5
deterministic: true
threads: {compute: 1, loader: 2}
data: {name: text, files: [a.txt, b.txt], split: [80, 10, 10], sequence: 16, batch: 8}
model: {name: gpt, layers: 1, width: 24, heads: 2, vocabulary: 256, length: 16}
optimizer: {name: adamw, lr: 0.01}
micro_batch: 4
stages: [{name: pretrain, train: 3e}]
checkpoint: {every: 5s, async: false}
log_every: 1
)";

// Lines that differ in the number at their begin: "0 bottles of beer on the wall".
inline std::string numbered_lines(int count, std::string_view what = "beer") {
  std::string text;
  for (int i = 0; i < count; ++i) text += str(i, " bottles of ", what, " on the wall\n");
  return text;
}

}  // namespace tessera::testing
