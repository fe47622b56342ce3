#include "bench/cases/sparse_torch.h"

#include "core/io/safetensors.h"
#include "core/io/vfs.h"
#include "tests/bench/fake_torch.h"
#include "tests/support/message_of.h"

namespace tessera::bench {
namespace {

using SparseTorch = FakeTorch;

const SparseTorchTarget kTarget{{{.pattern = "unstructured"}, .5, LinearShape{1, 2, 2}}, 2.5};

TEST(SparseTorchTargets, SayWhoTheRivalIs) {
  EXPECT_EQ(sparse_torch_targets().size(), 4u);
  EXPECT_EQ(kTarget.row(), "unstructured of 1x2 -> 2 against PyTorch's CSR");
}

TEST(SparseTorchTargets, TorchGetsOurInputAndTheZerosOfOurWeight) {
  const TemporaryFolder folder;
  const LayerPair pair = sparse_pair({{.pattern = "unstructured"}, .25, LinearShape{3, 8, 5}});
  write_product(pair, folder.path());
  const SafetensorsFile file =
      decode_safetensors(real_vfs().read_file(folder.path() / "product.safetensors"), "product.safetensors");
  EXPECT_EQ(file.tensors.at("x").to_vector<float>(), pair.x.to_vector<float>());
  const std::vector<float> weight = file.tensors.at("weight").to_vector<float>();
  EXPECT_EQ(weight.size(), 40u);
  EXPECT_EQ(std::ranges::count(weight, 0.0f), 30);
}

// Only one value of y is compared: the first.
TEST_F(SparseTorch, ItsFastestWayIsTheRivalAndItsDenseProductStandsAside) {
  const LayerPair pair = sparse_pair(kTarget.of);
  const double first = pair.compressed->forward(Var(pair.x), {}).value().to_vector<float>().front();
  const TorchProgram torch = program(R"({"modes": ["rows", "outside"]})", str(R"(values)
  echo '{"values": [)",
                                                                              first, R"(]}' ;;
matmul) echo '{"gflops": 1e6}' ;;
time)
  case $word in rows) ms=50 ;; outside) ms=20 ;; *) ms=30 ;; esac
  list=$ms
  while [ $count -gt 1 ]; do list="$list, $ms"; count=$((count - 1)); done
  echo "{\"ms\": [$list]}" ;;)"));
  const Value row = measure_against_torch(kTarget, {{.python = torch.python, .script = torch.script, .sweep_runs = 1}, 2, 3});
  EXPECT_EQ(row.at("library").as_string(), "PyTorch CSR");
  EXPECT_EQ(row.at("torch_settings").at("mode").as_string(), "outside");
  EXPECT_EQ(row.at("torch_ms").at("median").as_double(), 20);
  EXPECT_EQ(row.at("torch_aside").at("mode").as_string(), "dense");
  EXPECT_EQ(row.at("torch_aside").at("ms").at("median").as_double(), 30);
  EXPECT_NEAR(row.at("aside_ratio").at("median").as_double(), 1.5 * row.at("ratio").at("median").as_double(), 1e-9);
  for (const Value& finalist : row.at("torch_finalists").as_list()) EXPECT_NE(finalist.at("mode").as_string(), "dense");
  EXPECT_EQ(row.at("target").as_double(), 2.5);
  EXPECT_EQ(row.at("rounds").as_int(), 3);
  EXPECT_EQ(row.at("weights").as_string(), "constant");
}

TEST_F(SparseTorch, AnInterpreterWithoutItIsNamed) {
  const TorchProgram torch = program(R"({"missing": "No module named torch"})", "none) ;;");
  EXPECT_EQ(message_of<TorchMissing>([&] {
              check_torch({torch.python, torch.script});
            }),
            "torch: /bin/sh cannot import it: No module named torch");
}

}  // namespace
}  // namespace tessera::bench
