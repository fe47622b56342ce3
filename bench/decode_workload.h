// What decode_bench times: GPT-2's smallest network reading one token behind another, with the keys and values of all before it
// in a cache.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "bench/train_workload.h"
#include "core/nn/attention_cache.h"
#include "layers/models/gpt.h"

namespace tessera::bench {

class DecodeWorkload {
 public:
  static constexpr std::int64_t kPrompt = 256;  // tokens that are in the cache
  static constexpr std::int64_t kTokens = 64;  // that follow; behind the last one the first is read again, behind the prompt

  // Random weights, to which `change` is made. To be used under one ConstantWeights scope.
  DecodeWorkload(const models::Gpt& network, const std::string& precision, const Change& change = {});

  // For a rival: the network (bench/torch_transformers.py), and tokens.safetensors with "prompt" and "tokens", i64 [1, n].
  void write_inputs(const std::filesystem::path& directory);

  std::vector<float> scores();  // of what follows the prompt and the first token behind it
  std::vector<double> run(std::int64_t count);  // milliseconds of each of `count` tokens, from the first one on

  // Bytes of the weights that each token reads, in the network's precision: all except positions.weight.
  std::int64_t weight_bytes() const;

 private:
  Tensor read(const Tensor& tokens, AttentionCache& cache) const;  // scores [vocabulary] behind the last one
  Tensor token(std::int64_t index) const;

  models::Gpt config_;
  DType compute_;
  std::unique_ptr<Module> network_;
  Tensor prompt_, tokens_;
  AttentionCache behind_prompt_;  // copies share its memory: what they append lies behind the prompt
};

}  // namespace tessera::bench
