// Sizes of the named networks against published ones, or counted by hand where a paper gives only rounded numbers.
#include "layers/models/model.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

#include "core/autograd/numeric_check.h"
#include "core/config/read.h"
#include "core/support/error.h"
#include "tests/support/message_of.h"

namespace tessera {
namespace {

struct PublishedSize {
  ModelConfig config;
  Shape input;
  std::int64_t parameters;
  std::int64_t macs;
};

const Shape kCifar{2, 32, 32, 3};
const Shape kImageNet{2, 224, 224, 3};

std::vector<PublishedSize> published_sizes() {
  return {
      {named_model("mlp"), {2, 28, 28, 1}, 235146, 234752},
      {named_model("lenet5"), {2, 28, 28, 1}, 61706, 416520},
      {named_model("lenet5"), {2, 32, 32, 1}, 61706, 416520},
      // He et al. 2015, table 6, rounded to 0.27M, 0.46M, 0.66M, 0.85M: convolutions + batch-norm affines + fc.
      {named_model("resnet8"), kCifar, 75290, 12239488},
      {named_model("resnet20"), kCifar, 269722, 40551040},
      {named_model("resnet32"), kCifar, 464154, 68862592},
      {named_model("resnet44"), kCifar, 658586, 97174144},
      {named_model("resnet56"), kCifar, 853018, 125485696},
      {named_model("resnet110"), kCifar, 1727962, 252887680},
      // With 8, 16 and 32 channels: convolutions 216 + 2 x 576 + 1152 + 2304 + 4608 + 9216, norms 2 (8 + 16 + 32 + 64) for conv1,
      // layer1, layer2 and layer3, fc 330.
      {{.form = models::CifarResNet{.name = "resnet8", .width = 0.5}},
       kCifar,
       216 + 1152 + 3456 + 13824 + 48 + 64 + 128 + 330,
       1024 * (216 + 1152) + 256 * 3456 + 64 * 13824 + 320},
      // 5, 10 and 19 channels are 4.8, 9.6 and 19.2, rounded.
      {{.form = models::CifarResNet{.name = "resnet8", .width = 0.3}},
       kCifar,
       9 * (15 + 2 * 25 + 50 + 100 + 190 + 361) + 2 * (5 * 3 + 10 * 2 + 19 * 2) + 19 * 10 + 10,
       1024 * 9 * (15 + 50) + 256 * 9 * 150 + 64 * 9 * 551 + 190},
      {{.form = models::CifarResNet{.name = "resnet8", .width = 0.01}},
       kCifar,
       9 * (3 + 6) + 2 * 7 + 10 + 10,
       1024 * 9 * 5 + 256 * 9 * 2 + 64 * 9 * 2 + 10},
      {{.form = models::CifarResNet{.name = "resnet20", .shortcut = "projection"}}, kCifar, 272474, 40813184},
      // torchvision's model cards.
      {named_model("resnet18", 1000), kImageNet, 11689512, 1814073344},
      {named_model("resnet50", 1000), kImageNet, 25557032, 4089184256},
      {named_model("vgg16", 1000), kImageNet, 138365992, 15470264320},
      // Howard et al. 2017, table 4: 4.2M parameters, 569M multiply-adds.
      {named_model("mobilenet_v1", 1000), kImageNet, 4231976, 568740352},
      // Table 6: 1.3M parameters and 149M multiply-adds, then 2.6M and 325M.
      {{.form = models::MobileNetV1{.width = 0.5}, .classes = 1000}, kImageNet, 1331592, 149497088},
      {{.form = models::MobileNetV1{.width = 0.75}, .classes = 1000}, kImageNet, 2585560, 325400448},
  };
}

std::vector<std::string> parameter_paths(const ModelConfig& config, const Shape& input) {
  const std::unique_ptr<Module> model = build_model(config, input);
  std::vector<std::string> paths;
  for (const NamedParameter& named : named_parameters(*model)) paths.push_back(named.path);
  return paths;
}

void expect_path(const std::vector<std::string>& paths, const std::string& path) {
  EXPECT_NE(std::find(paths.begin(), paths.end(), path), paths.end()) << path;
}

template <class Failure>
std::string refusal(const ModelConfig& config, const Shape& input) {
  return message_of<Failure>([&] { build_model(config, input); });
}

TEST(Models, ParametersAndMacsEqualPublishedOnes) {
  for (const PublishedSize& size : published_sizes()) {
    SCOPED_TRACE(str(to_json(write(size.config)), ' ', size.input));
    const Cost cost = total_cost(*build_model(size.config, size.input), size.input);
    EXPECT_EQ(cost.parameters, size.parameters);
    EXPECT_EQ(cost.macs, size.macs);
  }
}

TEST(Models, TraceHasOneRowPerLeafInForwardOrder) {
  Trace trace;
  build_model(named_model("lenet5"), {1, 28, 28, 1})->output_shape({5, 28, 28, 1}, &trace);
  ASSERT_EQ(trace.size(), 12u);
  EXPECT_EQ(trace[0].path, "conv1");
  EXPECT_EQ(trace[0].output, (Shape{5, 28, 28, 6}));
  EXPECT_EQ(trace[0].weight_bytes, 4 * (6 * 25 + 6));
  EXPECT_EQ(trace[2].kind, "max_pool2d");
  EXPECT_EQ(trace[7].input, (Shape{5, 400}));
  EXPECT_EQ(trace.back().path, "fc3");
}

TEST(Models, NamesFollowTorchvision) {
  const auto cifar = parameter_paths(named_model("resnet20"), kCifar);
  for (const char* path : {"conv1.weight", "bn1.bias", "layer1.0.conv1.weight", "layer3.2.bn2.weight", "fc.bias"}) {
    expect_path(cifar, path);
  }
  const auto imagenet = parameter_paths(named_model("resnet50"), kCifar);
  for (const char* path : {"layer1.0.downsample.0.weight", "layer4.0.downsample.1.bias", "layer2.3.conv3.weight"}) {
    expect_path(imagenet, path);
  }
  const auto vgg = parameter_paths(named_model("vgg16"), kCifar);
  for (const char* path : {"features.0.weight", "features.41.bias", "classifier.0.weight", "classifier.6.bias"}) {
    expect_path(vgg, path);
  }
}

TEST(Models, MlpTakesItsHiddenWidths) {
  const auto model = build_model({.form = models::Mlp{.hidden = {7, 5}}, .classes = 3}, {1, 11});
  EXPECT_EQ(total_cost(*model, {1, 11}).parameters, 11 * 7 + 7 + 7 * 5 + 5 + 5 * 3 + 3);
  EXPECT_EQ(model->output_shape({4, 11}), (Shape{4, 3}));
}

TEST(Models, SmallImagesGiveVggAGlobalAverage) {
  const auto model = build_model(named_model("vgg16", 10), kCifar);
  EXPECT_TRUE(model->has_child("avgpool"));
  EXPECT_FALSE(model->has_child("flatten"));
  EXPECT_EQ(model->child("classifier").output_shape({1, 512}), (Shape{1, 10}));
}

TEST(Models, ImagesAndClassesKeepTheirSizesAtAnyWidth) {
  for (const double width : {0.01, 0.25, 1.5}) {
    for (const ModelForm& form :
         {ModelForm(models::CifarResNet{.width = width}), ModelForm(models::MobileNetV1{.width = width})}) {
      const auto model = build_model({.form = form, .classes = 7}, kCifar);
      EXPECT_EQ(model->output_shape(kCifar), (Shape{2, 7})) << form_name(form) << ' ' << width;
    }
  }
  const std::string refused =
      message_of<ConfigError>([] { read<ModelConfig>(parse_json(R"({"name": "vgg16", "width": 0.5})", "test")); });
  EXPECT_NE(refused.find("width: belongs to name: resnet8, resnet20, resnet32, resnet44, resnet56, resnet110, mobilenet_v1"),
            std::string::npos)
      << refused;
}

TEST(Models, UnknownNamesAndWrongInputsAreErrors) {
  const std::string unknown = message_of<ConfigError>([] { named_model("resnet21"); });
  EXPECT_NE(unknown.find("unknown model 'resnet21'; did you mean 'resnet20'?"), std::string::npos) << unknown;
  EXPECT_EQ(refusal<ShapeError>(named_model("resnet20"), {2, 8}), "resnet: input is [2, 8]; needs images [n, h, w, c]");
  EXPECT_EQ(refusal<ConfigError>({.form = models::LeNet5(), .in_channels = 3}, {1, 28, 28, 1}),
            "model lenet5: in_channels is 3, the data is [1, 28, 28, 1]; the last axis must agree");
}

TEST(Models, KeysThatTheModelCannotFollowAreErrors) {
  const auto refuse = [](const char* json) { EXPECT_THROW(read<ModelConfig>(parse_json(json, "test")), ConfigError) << json; };
  refuse(R"({"name": "resnet20", "hidden": [3]})");
  refuse(R"({"name": "resnet18", "shortcut": "projection"})");
  refuse(R"({"name": "mlp", "layers": ["relu"]})");
  refuse(R"({"name": "resnet18", "width": 0.5})");
  refuse(R"({"name": "resnet20", "width": 0})");
  refuse(R"({"name": "layers"})");
  refuse(R"({"name": "resnet20", "classes": 0})");
  const auto mlp = read<ModelConfig>(parse_json(R"({"name": "mlp", "hidden": [3, 2]})", "test"));
  EXPECT_EQ(std::get<models::Mlp>(mlp.form).hidden.size(), 2u);
}

// Parents call their children in a way that tells a numeric check which module ran an op.
TEST(Models, ABadWeightIsNamedByItsLayersPath) {
  const Shape input{2, 16, 16, 3};
  const Var x(Tensor::full(input, 0.5));
  for (const char* shortcut : {"option_a", "projection"}) {
    const auto model = build_model({.form = models::CifarResNet{.name = "resnet8", .shortcut = shortcut}}, input);
    initialize(*model, 1);
    for (const NamedParameter& entry : named_parameters(*model)) {
      SCOPED_TRACE(entry.path);
      const Tensor good = entry.parameter->value().clone();
      entry.parameter->set_value(Tensor::full(good.shape(), std::numeric_limits<double>::quiet_NaN()));
      const NumericCheck check;
      try {
        (*model)(x, Context{});
        ADD_FAILURE() << "not found";
      } catch (const NumericError& error) {
        const std::string layer = entry.path.substr(0, entry.path.rfind('.'));
        EXPECT_NE(std::string(error.what()).find(" (" + layer + ") forward was given the first NaN: input "), std::string::npos)
            << error.what();
      }
      entry.parameter->set_value(good);
    }
  }
}

}  // namespace
}  // namespace tessera
