// The JSON of tessera_describe().
#include <gtest/gtest.h>

#include "layers/models/bert.h"
#include "tests/capi/networks.h"
#include "train/run/network_file.h"

namespace tessera::capi::testing {
namespace {

TEST(CDescribe, OfARunOnImages) {
  const Loaded network(dense_run());
  const Value json = network.description();
  EXPECT_EQ(json.at("task").as_string(), "classification");
  EXPECT_EQ(json.at("origin").at("run").as_string(), dense_run());
  EXPECT_EQ(json.at("origin").at("stage").as_string(), "dense");
  EXPECT_EQ(json.at("precision").as_string(), "f32");
  EXPECT_EQ(to_json(json.at("passed_over")), "[]");
  EXPECT_EQ(to_json(json.at("inputs")),
            R"([{"name":"image","dtype":"float32","shape":[28,28,1],"optional":false,"pixels":true}])");
  EXPECT_EQ(to_json(json.at("outputs")), R"([{"name":"scores","dtype":"float32","shape":[10]}])");
  EXPECT_EQ(json.at("parameters").as_int(), (16 * 9 + 16) + 32 + (32 * 16 * 9 + 32) + (320 + 10));
  EXPECT_EQ(json.at("macs").as_int(), 14 * 14 * (16 * 9 + 32 * 16 * 9) + 320);
  EXPECT_EQ(to_json(json.at("compressed_layers")), "[]");
  EXPECT_EQ(json.at("classes").as_list().size(), 10u);
  EXPECT_EQ(json.at("preprocessing").at("mean").as_list().size(), 1u);
}

TEST(CDescribe, OfCompressedLayers) {
  const TemporaryFolder folder;
  const Loaded factored(trained(folder.path(), experiment(kFactored)));
  EXPECT_EQ(to_json(factored.description().at("compressed_layers")),
            R"([{"path":"conv2","kind":"tucker2_conv2d","ranks":{"out":8,"in":8},"parameters":992}])");
  const Loaded sparse(trained(folder.path(), experiment(kSparse)));
  EXPECT_EQ(to_json(sparse.description().at("compressed_layers")),
            R"([{"path":"conv2","kind":"sparse_conv2d","ranks":{"kept":922},"parameters":954}])");
}

TEST(CDescribe, OfTokensWithWhatLayersAskForBeside) {
  const TemporaryFolder folder;
  const std::string path = (folder.path() / "bert.safetensors").string();
  models::Bert config{.layers = 1, .width = 16, .heads = 2, .vocabulary = 50};
  const std::unique_ptr<Module> bert = config.build({1, 8});
  initialize(*bert, 3);
  write_network(real_vfs(), *bert, {1, 8}, path);
  const Value inputs = Loaded(path).description().at("inputs");
  ASSERT_EQ(inputs.as_list().size(), 3u) << to_json(inputs);
  EXPECT_EQ(inputs.as_list()[0].at("name").as_string(), "tokens");
  EXPECT_EQ(inputs.as_list()[0].at("dtype").as_string(), "int64");
  EXPECT_EQ(inputs.as_list()[1].at("name").as_string(), "key_mask");
  EXPECT_EQ(inputs.as_list()[1].at("dtype").as_string(), "uint8");
  EXPECT_EQ(inputs.as_list()[2].at("name").as_string(), "segments");
  EXPECT_EQ(inputs.as_list()[2].at("limit").as_int(), 2);
  for (std::size_t i = 0; i < 3; ++i) EXPECT_EQ(inputs.as_list()[i].at("optional").as_bool(), i > 0);
}

}  // namespace
}  // namespace tessera::capi::testing
