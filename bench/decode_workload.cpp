#include "bench/decode_workload.h"

#include <chrono>

#include "bench/named_workloads.h"
#include "core/device/precision.h"
#include "core/io/safetensors.h"
#include "core/io/vfs.h"
#include "core/ops/cast.h"

namespace tessera::bench {
namespace {

constexpr std::uint64_t kSeed = 1;

Tensor random_tokens(const std::string& name, std::int64_t count, std::int64_t vocabulary) {
  const Tensor tokens = Tensor::empty({1, count}, DType::i64);
  fill_field(tokens, {name, DType::i64, {count}, vocabulary}, kSeed, 0);
  return tokens;
}

}  // namespace

DecodeWorkload::DecodeWorkload(const models::Gpt& network, const std::string& precision, const Change& change)
    : config_(network),
      compute_(compute_dtype(precision, Device::cpu())),
      network_(network.build({1, kPrompt})),
      prompt_(random_tokens("prompt", kPrompt, network.vocabulary)),
      tokens_(random_tokens("tokens", kTokens, network.vocabulary)),
      behind_prompt_(kPrompt + kTokens) {
  initialize(*network_, kSeed);
  if (change) change(network_);
  const NoGrad no_grad;
  read(prompt_, behind_prompt_);
}

void DecodeWorkload::write_inputs(const std::filesystem::path& directory) {
  write_transformer(*network_, torch_gpt(config_), directory);
  SafetensorsFile tokens;
  tokens.tensors["prompt"] = prompt_;
  tokens.tensors["tokens"] = tokens_;
  write_file_atomically(real_vfs(), directory / "tokens.safetensors", encode_safetensors(tokens));
}

Tensor DecodeWorkload::read(const Tensor& tokens, AttentionCache& cache) const {
  const Var scores = (*network_)(Var(tokens), {.compute = compute_, .cache = &cache});
  cache.advance(tokens.dim(1));
  const Tensor last = scores.value().slice(1, tokens.dim(1) - 1, tokens.dim(1));
  return cast(Var(last.contiguous()), DType::f32).value();
}

Tensor DecodeWorkload::token(std::int64_t index) const { return tokens_.slice(1, index, index + 1).contiguous(); }

std::vector<float> DecodeWorkload::scores() {
  const NoGrad no_grad;
  AttentionCache cache = behind_prompt_;
  return read(token(0), cache).to_vector<float>();
}

std::vector<double> DecodeWorkload::run(std::int64_t count) {
  using Clock = std::chrono::steady_clock;
  const NoGrad no_grad;
  AttentionCache cache = behind_prompt_;
  std::vector<double> ms;
  for (std::int64_t i = 0; i < count; ++i) {
    if (cache.length() == cache.capacity()) cache = behind_prompt_;
    const auto start = Clock::now();
    read(token(i % kTokens), cache);
    ms.push_back(std::chrono::duration<double, std::milli>(Clock::now() - start).count());
  }
  return ms;
}

std::int64_t DecodeWorkload::weight_bytes() const {
  std::int64_t elements = 0;
  for (const NamedParameter& named : named_parameters(*network_)) {
    if (named.path != "positions.weight") elements += named.parameter->value().numel();
  }
  return elements * static_cast<std::int64_t>(size_of(compute_));
}

}  // namespace tessera::bench
