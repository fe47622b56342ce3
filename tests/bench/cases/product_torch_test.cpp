#include "bench/cases/product_torch.h"

#include "bench/cases/dense_cases.h"
#include "core/io/safetensors.h"
#include "core/io/vfs.h"
#include "core/ops/matmul.h"
#include "tests/bench/fake_torch.h"
#include "tests/support/message_of.h"

namespace tessera::bench {
namespace {

constexpr ProductShape kShape{5, 4, 3};

class TorchProduct : public FakeTorch {
 protected:
  // Torch reports one value of y for the comparison: here our first value, times `factor`.
  Value measured(double factor) const {
    const Contestant ours = product_case(kShape).ours;
    ours.run();
    const TorchProgram torch =
        program(R"({"modes": ["matmul", "into"]})", str(R"(values)
  echo '{"values": [)",
                                                        factor * ours.result().to_vector<float>().front(), R"(]}' ;;
matmul) echo '{"gflops": 1e6}' ;;
time)
  case $word in into) ms=20 ;; *) ms=30 ;; esac
  list=$ms
  while [ $count -gt 1 ]; do list="$list, $ms"; count=$((count - 1)); done
  echo "{\"ms\": [$list]}" ;;)"));
    return measure_torch_product(kShape, {{.python = torch.python, .script = torch.script, .sweep_runs = 1}, 2, 3});
  }
};

TEST_F(TorchProduct, ItsFastestWayIsTheRival) {
  const Value row = measured(1);
  EXPECT_EQ(row.at("op").as_string(), "matmul");
  EXPECT_EQ(row.at("shape").as_string(), "5x4x3");
  EXPECT_EQ(row.at("library").as_string(), "PyTorch");
  EXPECT_EQ(row.at("torch_settings").at("mode").as_string(), "into");
  EXPECT_EQ(row.at("torch_ms").at("median").as_double(), 20);
  EXPECT_GT(row.at("gflops").as_double(), 0);
}

TEST_F(TorchProduct, AnotherProductIsNoRival) { EXPECT_THROW(measured(1.1), NumericError); }

TEST_F(TorchProduct, GetsOurOperands) {
  const TemporaryFolder folder;
  write_matrices(kShape, folder.path());
  const SafetensorsFile file =
      decode_safetensors(real_vfs().read_file(folder.path() / "product.safetensors"), "product.safetensors");
  const Tensor a = file.tensors.at("a"), b = file.tensors.at("b");
  EXPECT_EQ(a.shape(), Shape({5, 3}));
  EXPECT_EQ(b.shape(), Shape({3, 4}));
  const Contestant ours = product_case(kShape).ours;
  ours.run();
  EXPECT_EQ(matmul(Var(a), Var(b)).value().to_vector<float>(), ours.result().to_vector<float>());
}

TEST_F(TorchProduct, AnInterpreterWithoutItIsNamed) {
  const TorchProgram torch = program(R"({"missing": "No module named torch"})", "none) ;;");
  EXPECT_EQ(message_of<TorchMissing>([&] {
              check_torch_product({torch.python, torch.script});
            }),
            "torch: /bin/sh cannot import it: No module named torch");
}

}  // namespace
}  // namespace tessera::bench
