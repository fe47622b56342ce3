#include "bench/cases/library_cases.h"

#include "core/io/safetensors.h"
#include "core/io/vfs.h"
#include "core/support/error.h"
#include "tests/bench/fake_torch.h"
#include "tests/support/message_of.h"

namespace tessera::bench {
namespace {

using LibraryCases = FakeTorch;

constexpr ConvShape kConv{2, 8, 12, 5, 3};
const LibraryCase kTrain{{"tt", {{"r1", 3}, {"r2", 5}, {"r3", 4}, {"r4", 2}}, kConv}, {4, 3, 2}};

SafetensorsFile inputs_of(const LibraryWorkload& workload, const TemporaryFolder& folder) {
  workload.write_inputs(folder.path());
  return decode_safetensors(real_vfs().read_file(folder.path() / "layer.safetensors"), "layer");
}

TEST(LibraryTargets, OurTrainsTakeNoFewerParametersAndMultiplyAdds) {
  std::size_t trains = 0;
  for (const auto& [of, least] : library_targets()) {
    const Value row = LibraryWorkload(of, Phase::inference).describe();
    SCOPED_TRACE(to_json(row));
    EXPECT_GT(least, 1);
    if (of.train.empty()) {
      EXPECT_EQ(row.at("parameters"), row.at("library_parameters"));
      EXPECT_EQ(row.at("macs"), row.at("library_macs"));
      continue;
    }
    ++trains;
    for (const char* key : {"parameters", "macs"}) {
      const double ours = row.at(key).as_double(), theirs = row.at(str("library_", key)).as_double();
      EXPECT_GE(ours, theirs) << key;
      EXPECT_LE(ours, 1.02 * theirs) << key;
    }
  }
  EXPECT_EQ(trains, 1u);
}

TEST(LibraryWorkload, WritesOurFactorsWhereTheFormsAreTheSame) {
  const TemporaryFolder folder;
  const LibraryWorkload workload({{"svd", {{"rank", 3}}, LinearShape{5, 8, 7}}}, Phase::training);
  const SafetensorsFile file = inputs_of(workload, folder);
  ASSERT_EQ(file.tensors.size(), 4u);
  EXPECT_EQ(file.tensors.at("in_factor").shape(), (Shape{3, 8}));
  EXPECT_EQ(file.tensors.at("out_factor").shape(), (Shape{7, 3}));
  EXPECT_EQ(file.tensors.at("x").shape(), (Shape{5, 8}));
  EXPECT_EQ(file.tensors.at("grad_y").shape(), (Shape{5, 7}));
  const Value layer = parse_json(real_vfs().read_file(folder.path() / "layer.json"), "layer");
  EXPECT_EQ(layer.at("kind").as_string(), "svd_linear");
  EXPECT_EQ(layer.at("phase").as_string(), "training");
  EXPECT_EQ(layer.at("config").at("rank").as_int(), 3);
}

TEST(LibraryWorkload, ALibrarysOwnTrainHasItsOwnValuesAndCosts) {
  const TemporaryFolder folder;
  const LibraryWorkload workload(kTrain, Phase::inference);
  const SafetensorsFile file = inputs_of(workload, folder);
  EXPECT_EQ(file.tensors.at("core1").shape(), (Shape{1, 8, 4}));
  EXPECT_EQ(file.tensors.at("core2").shape(), (Shape{4, 3, 3}));
  EXPECT_EQ(file.tensors.at("core3").shape(), (Shape{3, 3, 2}));
  EXPECT_EQ(file.tensors.at("core4").shape(), (Shape{2, 12, 1}));
  const Value described = workload.describe();
  EXPECT_EQ(described.at("library").as_string(), "TensorLy-Torch");
  EXPECT_EQ(described.at("library_ranks").as_string(), "4 3 2");
  EXPECT_EQ(described.at("library_parameters").as_int(), 32 + 36 + 18 + 24);
  EXPECT_EQ(described.at("library_macs").as_int(), 25 * (32 + 36 + 18 + 24));

  // The first value of y is in the corner of the first image: only the window's last two rows and columns are inside.
  const std::vector<float> x = file.tensors.at("x").to_vector<float>();
  const auto core = [&](int k, std::int64_t left, std::int64_t mode, std::int64_t right) {
    const Tensor& values = file.tensors.at(str("core", k));
    return static_cast<double>(values.data<float>()[(left * values.dim(1) + mode) * values.dim(2) + right]);
  };
  double expected = 0;
  for (std::int64_t row = 1; row < 3; ++row) {
    for (std::int64_t column = 1; column < 3; ++column) {
      for (std::int64_t in = 0; in < 8; ++in) {
        const double pixel = x[static_cast<std::size_t>(((row - 1) * 5 + column - 1) * 8 + in)];
        for (std::int64_t a = 0; a < 4; ++a) {
          for (std::int64_t b = 0; b < 3; ++b) {
            for (std::int64_t c = 0; c < 2; ++c) {
              expected += pixel * core(1, 0, in, a) * core(2, a, row, b) * core(3, b, column, c) * core(4, c, 0, 0);
            }
          }
        }
      }
    }
  }
  const std::vector<float> values = workload.values();
  EXPECT_EQ(values.size(), (2 * 5 * 5 * 12 + 96) / 97u);
  EXPECT_NEAR(values.front(), expected, 1e-5 * std::max(1.0, std::abs(expected)));  // f32 sums of some hundred terms
}

TEST_F(LibraryCases, TheFastestWayIsTheRival) {
  const LibraryCase of{{"svd", {{"rank", 1}}, LinearShape{1, 2, 2}}};
  const std::vector<float> values = LibraryWorkload(of, Phase::inference).values();
  ASSERT_EQ(values.size(), 1u);
  const TorchProgram torch = program(R"({"modes": ["linear", "linear-compiled"]})", str(R"(values)
  echo '{"values": [)",
                                                                                        static_cast<double>(values[0]), R"(]}' ;;
matmul) echo '{"gflops": 1e6}' ;;
time)
  case $word in linear) ms=50 ;; *) ms=20 ;; esac
  list=$ms
  while [ $count -gt 1 ]; do list="$list, $ms"; count=$((count - 1)); done
  echo "{\"ms\": [$list]}" ;;)"));
  const Value row = measure_library(of, Phase::inference, {{.python = torch.python, .script = torch.script, .sweep_runs = 1}, 2, 3});
  EXPECT_EQ(row.at("library").as_string(), "PyTorch");
  EXPECT_EQ(row.at("torch_settings").at("mode").as_string(), "linear-compiled");
  EXPECT_EQ(row.at("torch_settings").at("channels_last").as_bool(), false);
  EXPECT_EQ(row.at("torch_ms").at("median").as_double(), 20);
  EXPECT_EQ(row.at("rounds").as_int(), 3);
  EXPECT_EQ(row.at("weights").as_string(), "constant");
}

TEST_F(LibraryCases, AnInterpreterWithoutTheLibraryIsNamed) {
  EXPECT_EQ(message_of<TorchMissing>([] {
              check_library({"/no/python", "script"});
            }),
            "torch: there is no interpreter /no/python");
  const TorchProgram torch = program(R"({"missing": "No module named tensorly"})", "none) ;;");
  EXPECT_EQ(message_of<TorchMissing>([&] {
              check_library({torch.python, torch.script});
            }),
            "torch: /bin/sh cannot import it: No module named tensorly");
}

}  // namespace
}  // namespace tessera::bench
