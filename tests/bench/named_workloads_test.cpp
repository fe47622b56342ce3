#include "bench/named_workloads.h"

#include <gtest/gtest.h>

#include <cmath>

#include "bench/decode_workload.h"
#include "core/device/decisions.h"
#include "core/io/safetensors.h"
#include "core/io/vfs.h"
#include "core/support/error.h"
#include "tests/core/io/temporary_folder.h"

namespace tessera::bench {
namespace {

TEST(NamedWorkloads, TheContractionsOfAGptsStepAreCounted) {
  const std::int64_t width = 128, tokens = 16 * 256;
  const std::int64_t blocks = 4 * 12 * width * width, head = 256 * width;
  const std::int64_t attention = 4 * 2 * width * (256 + 1) / 2;  // a token sees 128.5 on average
  const TrainWorkload workload(workload_named("gpt"));
  EXPECT_EQ(workload.flops(), 6.0 * static_cast<double>(tokens * (blocks + head + attention)));
}

TEST(NamedWorkloads, AdamWKeepsTwoMomentsSgdOne) {
  WorkloadConfig gpt = workload_named("gpt");
  gpt.batch = 1;
  const std::int64_t parameters = 256 * 128 + 256 * 128 + 4 * (12 * 128 * 128 + 13 * 128) + 2 * 128;
  EXPECT_EQ(TrainWorkload(gpt).state_bytes(), 4 * 4 * parameters);
  gpt.optimizer.form = SgdConfig{.momentum = 0.9};
  EXPECT_EQ(TrainWorkload(gpt).state_bytes(), 3 * 4 * parameters);
}

TEST(NamedWorkloads, AGptLearnsFromWhatItIsGiven) {
  WorkloadConfig gpt = workload_named("gpt");
  gpt.batch = 1;
  gpt.batches = 1;
  TrainWorkload workload(gpt);
  const std::vector<double> losses = workload.run(5).loss;
  EXPECT_NEAR(losses.front(), std::log(256.0), 0.1);
  EXPECT_LT(losses.back(), losses.front());
}

TEST(NamedWorkloads, ARivalGetsOurNamesAndTheFirstTwoPartsOfEachBatch) {
  WorkloadConfig gpt = workload_named("gpt");
  gpt.batch = 1;
  const TemporaryFolder folder;
  TrainWorkload(gpt).write_inputs(folder.path());
  const auto read = [&](const char* name) {
    return decode_safetensors(real_vfs().read_file(folder.path() / name), name).tensors;
  };
  EXPECT_EQ(read("weights.safetensors").at("blocks.3.attn.qkv.weight").shape(), Shape({384, 128}));
  const auto batches = read("batches.safetensors");
  EXPECT_EQ(batches.size(), 8u);
  EXPECT_EQ(batches.at("y3").shape(), Shape({1, 256}));
}

TEST(NamedWorkloads, RefuseOtherNamesAndTransformersOnAGpu) {
  EXPECT_THROW(workload_named("gpt3"), ConfigError);
  EXPECT_THROW(workload_named("vit", Device::cuda(0)), ConfigError);
}

TEST(DecodeWorkload, ATokenBehindTheCacheIsAnsweredAsAtTheEndOfAll) {
  const models::Gpt small{.layers = 2, .width = 24, .heads = 3, .vocabulary = 31, .length = 400};
  DecodeWorkload workload(small, "f32");
  const std::vector<float> scores = workload.scores();
  EXPECT_EQ(workload.run(2 * DecodeWorkload::kTokens + 3).size(), 2u * DecodeWorkload::kTokens + 3);
  EXPECT_EQ(workload.scores(), scores) << "what was read since lies behind the prompt";
  EXPECT_EQ(workload.weight_bytes(), 4 * (31 * 24 + 2 * (12 * 24 * 24 + 13 * 24) + 2 * 24));

  const TemporaryFolder folder;
  workload.write_inputs(folder.path());
  const auto tokens = decode_safetensors(real_vfs().read_file(folder.path() / "tokens.safetensors"), "tokens").tensors;
  const Tensor all = Tensor::empty({1, DecodeWorkload::kPrompt + 1}, DType::i64);
  all.slice(1, 0, DecodeWorkload::kPrompt).copy_from(tokens.at("prompt"));
  all.slice(1, DecodeWorkload::kPrompt, all.dim(1)).copy_from(tokens.at("tokens").slice(1, 0, 1));
  const auto network = small.build({1, all.dim(1)});
  initialize(*network, 1);
  const NoGrad no_grad;
  const Tensor whole = (*network)(Var(all), Context{}).value();
  const std::vector<float> expected = whole.slice(1, all.dim(1) - 1, all.dim(1)).contiguous().to_vector<float>();
  ASSERT_EQ(expected.size(), scores.size());
  for (std::size_t i = 0; i < scores.size(); ++i) EXPECT_NEAR(scores[i], expected[i], 1e-5);
}

}  // namespace
}  // namespace tessera::bench
