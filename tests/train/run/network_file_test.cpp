#include "train/run/network_file.h"

#include <gtest/gtest.h>

#include "core/config/read.h"
#include "core/support/error.h"
#include "layers/model_tree.h"
#include "tests/core/io/temporary_folder.h"
#include "tests/support/message_of.h"
#include "tests/train/run/weights_files.h"
#include "train/run/import_weights.h"

namespace tessera {
namespace {

const Shape kInput{1, 9, 9, 1};
// The tensors fit no list of layers of the dense network.
constexpr const char* kFactored =
    R"([{"conv2d": {"out": 6, "kernel": 3, "name": "conv1"}}, {"batch_norm": {"name": "bn1"}}, "relu",
        {"tucker2_conv2d": {"out": 5, "kernel": 3, "rank_in": 2, "rank_out": 3, "name": "conv2"}},
        {"cp_conv2d": {"out": 4, "padding": 1, "rank": 3, "batch_norm": true, "name": "conv3"}}, "flatten",
        {"svd_linear": {"out": 3, "rank": 2, "name": "fc"}}])";

class NetworkFile : public ::testing::Test {
 protected:
  NetworkFile() : model_(build_model(testing::layers_config(kFactored), kInput)) { testing::randomise(*model_); }

  InitialModel load(const Shape& input = kInput) const {
    return initial_model(real_vfs(), {.form = models::Saved(), .weights = path_.string()}, input, 7);
  }
  SafetensorsFile file() const { return decode_safetensors(real_vfs().read_file(path_), "file"); }

  TemporaryFolder folder_;
  std::filesystem::path path_ = folder_.path() / "net.safetensors";
  std::unique_ptr<Module> model_;
};

TEST_F(NetworkFile, ComesBackWithItsStructureAndEveryTensor) {
  const std::int64_t bytes = write_network(real_vfs(), *model_, kInput, path_);
  EXPECT_EQ(bytes, static_cast<std::int64_t>(std::filesystem::file_size(path_)));
  const InitialModel loaded = load();
  EXPECT_EQ(describe(*loaded.model), describe(*model_));
  const State before = model_state(*model_), after = model_state(*loaded.model);
  ASSERT_EQ(before.tensors.size(), after.tensors.size());
  for (const auto& [name, tensor] : before.tensors) {
    EXPECT_EQ(tensor.to_vector<float>(), after.tensors.at(name).to_vector<float>()) << name;
  }
  EXPECT_EQ(describe(*empty_model(real_vfs(), {.form = models::Saved(), .weights = path_.string()}, kInput)), describe(*model_));
}

TEST_F(NetworkFile, SaysWhatItHoldsAndIsVerified) {
  write_network(real_vfs(), *model_, kInput, path_);
  const auto metadata = file().metadata;
  EXPECT_EQ(metadata.at(kLayoutKey), "OHWI");
  EXPECT_EQ(metadata.at(kInputKey), "[1,9,9,1]");
  EXPECT_TRUE(metadata.contains(std::string(kChecksumKey)));
  std::string bytes = real_vfs().read_file(path_);
  bytes.back() = static_cast<char>(bytes.back() ^ 1);
  write_file_atomically(real_vfs(), path_, bytes);
  EXPECT_NE(message_of<IoError>([&] { load(); }).find("checksum"), std::string::npos);
}

TEST_F(NetworkFile, WithoutANetworkOrWithABrokenOneItIsRefused) {
  testing::save(path_, {.tensors = model_state(*model_).tensors, .metadata = {{kLayoutKey, "OHWI"}}});
  EXPECT_EQ(message_of<ConfigError>([&] { load(); }),
            path_.string() +
                ": holds tensors and no network, which name: saved needs; give a run folder or a file of tessera "
                "compress or tessera export --layout tessera, or name the network");
  testing::save(path_, {.tensors = {}, .metadata = {{kLayoutKey, "OHWI"}, {kNetworkKey, R"({"kind": "cnov"})"}}});
  EXPECT_TRUE(message_of<ConfigError>([&] { load(); }).starts_with(path_.string() + ": its network cannot be built: "));
  testing::save(path_, {.tensors = {}, .metadata = {{kLayoutKey, "OHWI"}, {kNetworkKey, "{"}}});
  EXPECT_NE(message_of<IoError>([&] { load(); }).find(path_.string() + ": tessera.network"), std::string::npos);
}

TEST_F(NetworkFile, SaysItsOwnInput) {
  write_network(real_vfs(), *model_, kInput, path_);
  const FileNetwork network = file_network(real_vfs(), path_.string());
  EXPECT_EQ(network.input, kInput);
  EXPECT_EQ(describe(*network.model), describe(*model_));
  EXPECT_EQ(network.model->parameters().size(), model_->parameters().size());
  const std::string tree = to_json(describe(*model_));
  const auto fault_of = [&](const char* input) {
    testing::save(path_, {.tensors = model_state(*model_).tensors,
                          .metadata = {{kLayoutKey, "OHWI"}, {kNetworkKey, tree}, {kInputKey, input}}});
    return message_of<IoError>([&] { file_network(real_vfs(), path_.string()); });
  };
  testing::save(path_, {.tensors = model_state(*model_).tensors,
                        .metadata = {{kLayoutKey, "OHWI"}, {kNetworkKey, tree}, {kInputKey, "[1,9,9,2]"}}});
  const std::string unfit = message_of<ConfigError>([&] { file_network(real_vfs(), path_.string()); });
  EXPECT_TRUE(unfit.starts_with(path_.string() + ": ")) << unfit;
  EXPECT_NE(unfit.find("input channels differ"), std::string::npos) << unfit;
  for (const char* input : {"[1,0]", "7", "[1,9.5]", "[1,9,9,1,1]"}) {
    EXPECT_EQ(fault_of(input), str(path_.string(), ": tessera.input is ", input, "; must be a list of up to 4 sizes"));
  }
  EXPECT_EQ(fault_of("[1,4294967296,4294967296]"),
            path_.string() + ": tessera.input is [1,4294967296,4294967296]; must have at most 2^40 elements");
}

TEST_F(NetworkFile, SaysWhatItIsFor) {
  write_network(real_vfs(), *model_, kInput, path_);
  EXPECT_FALSE(file_network(real_vfs(), path_.string()).use);
  NetworkUse use{.task = "chess", .precision = "bf16"};
  use.data.set("board", 64);
  use.decisions.set("version", 1);
  write_network(real_vfs(), *model_, kInput, path_, use);
  const std::optional<NetworkUse> read_back = file_network(real_vfs(), path_.string()).use;
  ASSERT_TRUE(read_back);
  EXPECT_EQ(write(*read_back), write(use));
  EXPECT_EQ(write(load().use.value()), write(use)) << "as model: {name: saved} reads it";
  const auto fault_of = [&](const char* text) {
    SafetensorsFile changed = file();
    changed.metadata.erase(std::string(kChecksumKey));
    changed.metadata[kUseKey] = text;
    testing::save(path_, changed);
    return message_of<IoError>([&] { file_network(real_vfs(), path_.string()); });
  };
  EXPECT_EQ(fault_of(R"({"task": 7})"), path_.string() + ": tessera.use: task: expected text, found 7; write it in quotes");
  EXPECT_NE(fault_of("{}").find(path_.string() + ": tessera.use: "), std::string::npos);
  EXPECT_NE(fault_of(R"({"task": "chess", "data": 7})").find("data and decisions must be blocks"), std::string::npos);
  EXPECT_NE(fault_of("{").find(path_.string() + ": tessera.use"), std::string::npos);
}

TEST_F(NetworkFile, TakesNoOtherInputThanItsOwn) {
  write_network(real_vfs(), *model_, kInput, path_);
  EXPECT_NE(message_of<ShapeError>([&] { load({1, 9, 9, 2}); }).find("input channels differ"), std::string::npos);
}

TEST(NetworkFileConfig, SavedNeedsWeightsAndNothingThatTheySay) {
  const auto message = [](const char* json) {
    return message_of<ConfigError>([&] { read<ModelConfig>(parse_json(json, "test")); });
  };
  EXPECT_NE(message(R"({"name": "saved"})").find("weights: name: saved needs the weights"), std::string::npos);
  EXPECT_NE(message(R"({"name": "saved", "weights": "x", "in_channels": 1})").find("in_channels: the weights of name: saved"),
            std::string::npos);
}

}  // namespace
}  // namespace tessera
