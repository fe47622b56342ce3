#include "train/report/bench_network.h"

#include <gtest/gtest.h>

#include "core/cpu/onednn_version.h"
#include "core/support/error.h"
#include "layers/models/model.h"
#include "tests/core/io/temporary_folder.h"
#include "tests/support/message_of.h"
#include "train/resolve_device.h"

namespace tessera {
namespace {

using Counts = std::vector<std::int64_t>;

BenchNetwork load(BenchOptions options) { return load_bench_network(real_vfs(), options); }
std::string refusal(const BenchOptions& options) {
  return message_of<ConfigError>([&] { load_bench_network(real_vfs(), options); });
}

TEST(BenchNetwork, ListsAreWholeNumbersFromOne) {
  EXPECT_EQ(parse_counts("--batch", "1,32", 1000), (Counts{1, 32}));
  EXPECT_EQ(parse_counts("--batch", "7", 1000), Counts{7});
  for (const char* text : {"", "1,", ",1", "0", "-1", "1,x", "1.5", "1 2", "+1", "1000001", "99999999999999999999"}) {
    EXPECT_THROW(parse_counts("--batch", text, 1000), ConfigError) << text;
  }
  EXPECT_EQ(message_of<ConfigError>([] { parse_counts("--threads", "2,two", 1024); }),
            "--threads: 'two' is no whole number from 1 to 1024; write whole numbers with commas between, e.g. 1,32");
}

TEST(BenchNetwork, InputsAreWrittenChannelsFirst) {
  EXPECT_EQ(parse_input("3x224x192"), Shape({1, 224, 192, 3}));
  EXPECT_EQ(parse_input("784"), Shape({1, 784}));
  for (const char* text : {"", "3x224", "3x224x224x1", "3x0x5", "3X224X224", "3x224x"}) {
    EXPECT_THROW(parse_input(text), ConfigError) << text;
  }
}

TEST(BenchNetwork, AModelHasTheInputThatItWasMadeFor) {
  const BenchNetwork network = load({.target = "resnet20"});
  EXPECT_EQ(network.input, Shape({1, 32, 32, 3}));
  EXPECT_EQ(network.batches, (Counts{1, 32}));
  EXPECT_EQ(network.threads.size(), 1u);
  EXPECT_TRUE(network.dense.empty());
  EXPECT_EQ(network.compute, DType::f32);
  for (const std::string_view name : model_names()) {
    EXPECT_EQ(usual_input(named_model(name)).has_value(), name != "layers" && name != kSavedModel) << name;
  }
}

TEST(BenchNetwork, OptionsAndKeysOfTheModelHold) {
  const BenchNetwork network =
      load({.target = "mlp", .overrides = {"classes=3", "hidden=[5]"}, .input = "7", .batch = "2", .threads = "1,2"});
  EXPECT_EQ(network.model->output_shape({4, 7}), Shape({4, 3}));
  EXPECT_EQ(network.batches, Counts{2});
  EXPECT_EQ(network.threads, (Counts{1, 2}));
  EXPECT_NE(refusal({.target = "mlp", .overrides = {"clases=3"}}).find("did you mean 'classes'?"), std::string::npos);
}

TEST(BenchNetwork, APrecisionHoldsForWhateverIsTimed) {
  EXPECT_EQ(load({.target = "mlp", .precision = "f32"}).compute, DType::f32);
  if (cpu::onednn_has_bf16()) {
    EXPECT_EQ(load({.target = "mlp", .precision = "bf16"}).compute, DType::bf16);
  }
  EXPECT_NE(refusal({.target = "mlp", .precision = "f31"}).find("f31"), std::string::npos);
}

TEST(BenchNetwork, ADeviceThatIsNotThereIsRefusedAsInTraining) {
  const std::string message = message_of<ConfigError>([] { resolve_device("cuda:97"); });
  EXPECT_EQ(refusal({.target = "mlp", .device = "cuda:97"}), message);
  EXPECT_NE(message.find("device is cuda:97"), std::string::npos) << message;
  EXPECT_NE(refusal({.target = "mlp", .device = "gpu"}).find("gpu"), std::string::npos);
  EXPECT_EQ(load({.target = "mlp", .device = "cpu"}).device, Device::cpu());
}

TEST(BenchNetwork, AnInputStandsForDataThatIsNotThere) {
  const TemporaryFolder folder;
  const std::string file = folder / "x.yaml";
  write_file_atomically(real_vfs(), file, R"({version: 1, name: x, data: {name: cifar10, root: /nowhere},
                       model: {name: resnet8, classes: 10}, stages: [{name: a, factorise: {layers: layer3.0.conv2, ranks: {macs: 0.5}}}]})");
  EXPECT_NE(refusal({.target = file}).find("/nowhere"), std::string::npos);
  const BenchNetwork network = load({.target = file, .input = "3x16x16"});
  EXPECT_EQ(network.input, Shape({1, 16, 16, 3}));
  EXPECT_EQ(network.dense.size(), 1u);
}

TEST(BenchNetwork, WhatIsNoTargetNamesTheNearestModels) {
  const std::string message = refusal({.target = "resnet81"});
  EXPECT_TRUE(message.starts_with("bench: 'resnet81' is no run folder, experiment file or model; did you mean 'resnet"))
      << message;
  EXPECT_NE(message.find("did you mean 'resnet18'?"), std::string::npos) << message;
}

TEST(BenchNetwork, WhatDoesNotFitTheTargetIsRefused) {
  EXPECT_EQ(refusal({.target = "resnet8", .at = "best"}), "--at names a checkpoint of a run; resnet8 is no run folder");
  EXPECT_TRUE(refusal({.target = "layers", .overrides = {"layers=[relu]"}}).find("give one with --input") != std::string::npos);
  EXPECT_TRUE(refusal({.target = "resnet8", .input = "784"}).starts_with("bench: resnet8: "));
}

}  // namespace
}  // namespace tessera
