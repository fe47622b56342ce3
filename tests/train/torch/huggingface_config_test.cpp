#include "train/torch/huggingface_config.h"

#include <gtest/gtest.h>

#include "core/support/error.h"

namespace tessera {
namespace {

using Lines = std::vector<std::string>;

Lines differing(const std::string& config, const std::string& settings) {
  return differing_settings(parse_json(config, "config"), parse_json(settings, "settings"));
}

TEST(HuggingFaceConfig, ComparesWhatBothSay) {
  EXPECT_EQ(differing(R"({"n_head": 12, "n_layer": 3})", R"({"n_head": 8, "layer_norm_epsilon": 1e-5})"),
            Lines{"n_head is 12, the network's is 8"});
  EXPECT_EQ(differing(R"({"n_head": null, "model_type": "bert"})", R"({"n_head": 8, "model_type": "bert"})"), Lines{});
  EXPECT_EQ(differing(R"({"model_type": "roberta"})", R"({"model_type": "bert"})"),
            Lines{"model_type is \"roberta\", the network's is \"bert\""});
  EXPECT_EQ(differing(R"({"rope_theta": 10000})", R"({"rope_theta": 10000.0})"), Lines{}) << "a whole number is a number";
}

TEST(HuggingFaceConfig, KnowsOneFunctionUnderSeveralNames) {
  for (const char* name : {"gelu_new", "gelu_pytorch_tanh", "gelu_fast"}) {
    EXPECT_EQ(differing(str(R"({"activation_function": ")", name, "\"}"), R"({"activation_function": "gelu_new"})"), Lines{});
    EXPECT_EQ(differing(str(R"({"activation_function": ")", name, "\"}"), R"({"activation_function": "gelu"})").size(), 1u);
  }
  EXPECT_EQ(differing(R"({"hidden_act": "swish"})", R"({"hidden_act": "silu"})"), Lines{});
}

TEST(HuggingFaceConfig, FindsRotaryPositionsWhereTheyStoodBefore) {
  const char* const ours = R"({"rope_theta": 10000.0, "rope_type": "default"})";
  EXPECT_EQ(differing(R"({"rope_parameters": {"rope_theta": 10000.0, "rope_type": "default"}})", ours), Lines{});
  EXPECT_EQ(differing(R"({"rope_parameters": {"rope_theta": 500000.0, "rope_type": "llama3"}})", ours),
            (Lines{"rope_theta is 5e+05, the network's is 10000.0", "rope_type is \"llama3\", the network's is \"default\""}));
  EXPECT_EQ(differing(R"({"rope_theta": 10000.0, "rope_scaling": null})", ours), Lines{});
  EXPECT_EQ(differing(R"({"rope_scaling": {"type": "linear", "factor": 2.0}})", ours),
            Lines{"rope_type is \"linear\", the network's is \"default\""});
  EXPECT_EQ(differing(R"({"rope_scaling": "linear", "rope_parameters": [1]})", ours), Lines{}) << "no blocks";
}

}  // namespace
}  // namespace tessera
