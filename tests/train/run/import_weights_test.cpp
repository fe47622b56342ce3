#include "train/run/import_weights.h"

#include <gtest/gtest.h>

#include <limits>

#include "core/support/error.h"
#include "tests/core/io/temporary_folder.h"
#include "tests/support/message_of.h"
#include "tests/train/run/weights_files.h"
#include "train/torch/torch_layout.h"

namespace tessera {
namespace {

using testing::counting;
using testing::save;

// A 3x3 kernel with 3 input and 3 output channels: no shape tells the layouts apart. Its 2x2x3 output is flattened.
constexpr const char* kLayers =
    R"([{"conv2d": {"out": 3, "kernel": 3, "bias": false, "name": "conv"}}, {"batch_norm": {"name": "bn"}},
                                    "flatten", {"linear": {"out": 2, "name": "fc"}}])";
const Shape kInput{1, 4, 4, 3};

class ImportWeights : public ::testing::Test {
 protected:
  ImportWeights() : config_(testing::layers_config(kLayers)), path_(folder_.path() / "w.safetensors") {
    config_.weights = path_.string();
    file_.tensors = {{"conv.weight", counting({3, 3, 3, 3})},
                     {"bn.weight", counting({3})},
                     {"bn.bias", counting({3})},
                     {"bn.running_mean", counting({3})},
                     {"bn.running_var", counting({3})},
                     {"fc.weight", counting({2, 12})},
                     {"fc.bias", counting({2})}};
  }

  InitialModel load() const { return initial_model(real_vfs(), config_, kInput, 1); }
  std::map<std::string, Tensor> load_tensors() const { return model_state(*load().model).tensors; }
  InitialModel save_and_load() const {
    save(path_, file_);
    return load();
  }
  std::string error() const {
    return message_of<ConfigError>([&] { load(); });
  }
  std::string error_of_file() const {
    save(path_, file_);
    return error();
  }

  TemporaryFolder folder_;
  ModelConfig config_;
  std::filesystem::path path_;
  SafetensorsFile file_;
};

TEST_F(ImportWeights, TellsLayoutsApartByMetadataAlone) {
  file_.metadata["tessera.layout"] = std::string("OHWI");
  save(path_, file_);
  const Tensor ours = load_tensors().at("conv.weight");
  EXPECT_EQ(ours.to_vector<float>(), counting({3, 3, 3, 3}).to_vector<float>());
  for (const bool named : {false, true}) {
    file_.metadata.erase("tessera.layout");
    if (named) file_.metadata["tessera.layout"] = std::string("OIHW");
    save(path_, file_);
    const Tensor torch = load_tensors().at("conv.weight");
    EXPECT_EQ(torch.to_vector<float>(), counting({3, 3, 3, 3}).permute({0, 2, 3, 1}).contiguous().to_vector<float>());
    EXPECT_NE(torch.to_vector<float>(), ours.to_vector<float>());
  }
  file_.metadata["tessera.layout"] = std::string("HWIO");
  EXPECT_EQ(error_of_file(),
            str(config_.weights, ": metadata tessera.layout is 'HWIO'; must be OHWI (tessera) or OIHW (PyTorch)"));
}

TEST_F(ImportWeights, PermutesTheColumnsBehindAFlatten) {
  save(path_, file_);
  const std::vector<float> ours = load_tensors().at("fc.weight").to_vector<float>();
  for (int out = 0; out < 2; ++out) {
    for (int pixel = 0; pixel < 4; ++pixel) {
      for (int channel = 0; channel < 3; ++channel) {
        EXPECT_EQ(ours[static_cast<std::size_t>(out * 12 + pixel * 3 + channel)], out * 12 + channel * 4 + pixel);
      }
    }
  }
  file_.metadata["tessera.layout"] = std::string("OHWI");
  save(path_, file_);
  EXPECT_EQ(load_tensors().at("fc.weight").to_vector<float>(), counting({2, 12}).to_vector<float>());
}

TEST_F(ImportWeights, ListsEveryTensorThatDoesNotFit) {
  file_.tensors.erase("bn.running_var");
  file_.tensors["bn.running_vra"] = counting({3});
  file_.tensors["extra"] = counting({});
  file_.tensors["conv.weight"] = counting({3, 1, 3, 3});
  file_.tensors["bn.bias"] = Tensor::zeros({3}, DType::i32);
  file_.tensors["fc.weight"] = counting({1000, 12});
  file_.tensors["fc.bias"].fill(std::numeric_limits<double>::quiet_NaN());
  EXPECT_EQ(error_of_file(), config_.weights +
                                 " does not fit the network layers (PyTorch's names, convolutions OIHW):"
                                 "\n  missing: bn.running_var [3]; the file has 'bn.running_vra'"
                                 "\n  unexpected: bn.running_vra [3]"
                                 "\n  unexpected: extra []"
                                 "\n  mismatched: conv.weight is f32 [3, 1, 3, 3], the network needs f32 [3, 3, 3, 3]"
                                 "\n  mismatched: bn.bias is i32 [3], the network needs f32 [3]"
                                 "\n  mismatched: fc.weight is f32 [1000, 12], the network needs f32 [2, 12]"
                                 "\n  not finite: fc.bias [2] has 2 NaN or Inf of 2"
                                 "\nallow_nonfinite: true takes NaN and Inf as they are"
                                 "\nhead: reset draws the last layer anew and asks the file nothing of it");
}

TEST_F(ImportWeights, ResetsTheLastLayerOnlyWhenTold) {
  const auto drawn = [&](const std::string& name) {
    ModelConfig config = config_;
    config.weights.clear();
    return model_state(*initial_model(real_vfs(), config, kInput, 1).model).tensors.at(name).to_vector<float>();
  };
  file_.tensors["fc.weight"] = counting({1000, 12});
  file_.tensors.erase("fc.bias");
  EXPECT_NE(error_of_file().find("missing: fc.bias [2]"), std::string::npos) << error();
  config_.head = std::string("reset");
  const InitialModel initial = load();
  const auto tensors = model_state(*initial.model).tensors;
  EXPECT_EQ(tensors.at("fc.weight").to_vector<float>(), drawn("fc.weight"));
  EXPECT_EQ(tensors.at("fc.bias").to_vector<float>(), drawn("fc.bias"));
  EXPECT_EQ(tensors.at("bn.weight").to_vector<float>(), (std::vector<float>{0, 1, 2}));
  EXPECT_EQ(initial.imported, str("weights: 5 tensors from ", config_.weights, ", fc drawn anew"));
  file_.tensors.erase("bn.weight");
  EXPECT_EQ(error_of_file(), config_.weights +
                                 " does not fit the network layers (PyTorch's names, convolutions OIHW):"
                                 "\n  missing: bn.weight [3]");
}

TEST_F(ImportWeights, ResetsOnlyALayerThatCanMakeLogits) {
  std::get<models::LayerList>(config_.form).layers = parse_json(R"([{"linear": {"out": 2, "name": "fc"}}, {"batch_norm": {"name": "bn"}}])", "test");
  config_.head = std::string("reset");
  save(path_, file_);
  EXPECT_EQ(error(), "head: reset: the network's last layer with parameters, 'bn', is batch_norm; it must be linear or conv2d");
}

TEST_F(ImportWeights, IgnoresCountersOfBatchNormsOnly) {
  file_.tensors["bn.num_batches_tracked"] = Tensor::scalar(17, DType::i64);
  EXPECT_EQ(save_and_load().imported, str("weights: 7 tensors from ", config_.weights, ", 1 num_batches_tracked ignored"));
  file_.tensors["fc.num_batches_tracked"] = Tensor::scalar(17, DType::i64);
  EXPECT_NE(error_of_file().find("\n  unexpected: fc.num_batches_tracked []"), std::string::npos) << error();
  file_.tensors.erase("fc.num_batches_tracked");
  file_.metadata["tessera.layout"] = std::string("OHWI");
  EXPECT_NE(error_of_file().find("\n  unexpected: bn.num_batches_tracked []"), std::string::npos) << error();
}

TEST_F(ImportWeights, ConvertsOtherFloatsAndJudgesThemAfterwards) {
  file_.tensors["bn.weight"] = Tensor::full({3}, 0.333251953125, DType::f16);  // exact in f16
  file_.tensors["bn.bias"] = Tensor::full({3}, -1.5, DType::bf16);
  file_.tensors["bn.running_mean"] = Tensor::from<double>({0.1, 1 + 1e-9, -3}, {3});
  save(path_, file_);
  const auto tensors = load_tensors();
  EXPECT_EQ(tensors.at("bn.weight").to_vector<float>(), std::vector<float>(3, 0.333251953125f));
  EXPECT_EQ(tensors.at("bn.bias").to_vector<float>(), std::vector<float>(3, -1.5f));
  EXPECT_EQ(tensors.at("bn.running_mean").to_vector<float>(), (std::vector<float>{0.1f, 1.0f, -3.0f}));
  file_.tensors["bn.running_mean"] = Tensor::from<double>({1e300, 0, 0}, {3});  // finite, but not in f32
  EXPECT_NE(error_of_file().find("\n  not finite: bn.running_mean [3] has 1 NaN or Inf of 3"), std::string::npos) << error();
  config_.allow_nonfinite = true;
  EXPECT_EQ(load_tensors().at("bn.running_mean").to_vector<float>()[0], std::numeric_limits<float>::infinity());
}

TEST_F(ImportWeights, KeepsTheMasksOfOurFiles) {
  file_.metadata["tessera.layout"] = std::string("OHWI");
  file_.tensors["fc.bias.mask"] = Tensor::from<std::uint8_t>({0b01}, {1});
  const InitialModel initial = save_and_load();
  EXPECT_EQ(find_module(*initial.model, "fc").parameter("bias").mask().to_vector<std::uint8_t>(),
            (std::vector<std::uint8_t>{1, 0}));
  file_.tensors["fc.bias.mask"] = Tensor::from<std::uint8_t>({1, 0, 1}, {3});
  EXPECT_NE(error_of_file().find("\n  mismatched: fc.bias.mask is u8 [3] on cpu; needs u8 [1]"), std::string::npos) << error();
  file_.tensors["fc.bias.mask"] = Tensor::from<std::uint8_t>({0b101}, {1});
  EXPECT_NE(error_of_file().find("\n  mismatched: fc.bias.mask keeps elements behind the last of 2"), std::string::npos)
      << error();
  file_.tensors["fc.bias.mask"] = Tensor::from<float>({1}, {1});
  EXPECT_NE(error_of_file().find("\n  mismatched: fc.bias.mask is f32 [1] on cpu; needs u8 [1]"), std::string::npos) << error();
  file_.tensors.erase("fc.bias.mask");
  file_.tensors["bn.running_mean.mask"] = Tensor::from<std::uint8_t>({1, 0, 1}, {3});
  EXPECT_NE(error_of_file().find("\n  unexpected: bn.running_mean.mask [3]"), std::string::npos) << error();
}

TEST_F(ImportWeights, ListsAFirstConvolutionForOtherChannels) {
  save(path_, file_);
  const auto error_for = [&](const Shape& input) {
    return message_of<ConfigError>([&] { initial_model(real_vfs(), config_, input, 1); });
  };
  config_.in_channels = 1;
  EXPECT_NE(error_for({1, 4, 4, 1}).find("\n  mismatched: conv.weight is f32 [3, 3, 3, 3], the network needs f32 [3, 1, 3, 3]"),
            std::string::npos);
}

TEST_F(ImportWeights, SaysHowToConvertAPickle) {
  for (const char* name : {"net.pth", "net.pt"}) {
    config_.weights = (folder_.path() / name).string();
    write_file_atomically(real_vfs(), config_.weights, "anything");
    EXPECT_EQ(error(),
              str(config_.weights, ": a PyTorch file, which may run code when it is loaded; convert it once in Python:\n",
                  "  import torch, safetensors.torch\n", "  safetensors.torch.save_file(torch.load('", name,
                  "', map_location='cpu'), 'net.safetensors')"));
  }
  config_.weights = (folder_.path() / "net.bin").string();
  write_file_atomically(real_vfs(), config_.weights, "PK\x03\x04 a zip archive");
  EXPECT_NE(error().find("torch.load('net.bin'"), std::string::npos) << error();
}

TEST_F(ImportWeights, NamesPathsThatHoldNoWeights) {
  EXPECT_EQ(error(), "weights: no file or run folder " + config_.weights);
  config_.weights = folder_.path().string();
  EXPECT_NE(error().find("is not a run folder: config.resolved.yaml is missing"), std::string::npos) << error();
  config_.weights = path_.string();
  write_file_atomically(real_vfs(), path_, "short");
  EXPECT_THROW(load(), IoError);
}

}  // namespace
}  // namespace tessera
