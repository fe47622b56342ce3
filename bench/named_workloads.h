// The networks whose training steps are timed, with the samples, the task and the optimiser of each.
#pragma once

#include <string>

#include "bench/train_workload.h"
#include "layers/models/gpt.h"

namespace tessera::bench {

// "resnet20": batch 128 of 32x32 with 10 classes; "resnet18": batch 16 of 224x224 with 1000. On a GPU "resnet18" and "resnet50"
// at batch 256. SGD with momentum and weight decay.
// With AdamW, on the CPU: "gpt": 4 layers, width 128, batch 16 of 256 tokens of 256; "gpt2": GPT-2's smallest network, batch 2 of
// 256 tokens; "vit": ViT-Ti/16, batch 16 of 224x224.
// Throws ConfigError on others.
WorkloadConfig workload_named(const std::string& model, Device device = {});

models::Gpt gpt2_small();
// For bench/torch_transformers.py.
Value torch_gpt(const models::Gpt& config);

}  // namespace tessera::bench
