#include "bench/cases/sparse_torch.h"

#include "core/device/constant_weights.h"
#include "core/device/decisions.h"
#include "core/io/safetensors.h"
#include "core/io/scratch_folder.h"
#include "core/io/vfs.h"
#include "core/support/error.h"
#include "train/run/decisions_file.h"

namespace tessera::bench {
namespace {

constexpr double kLeastRatio = 2.5;
// Some ways take hundreds of times as long as others. Only the second pass tries other settings, for the fastest ways.
constexpr TorchSettings kFirstSettings{.channels_last = false};

}  // namespace

std::string SparseTorchTarget::row() const { return row_of(of) + " against PyTorch's CSR"; }

std::vector<SparseTorchTarget> sparse_torch_targets() {
  std::vector<SparseTorchTarget> all;
  for (const double density : {.05, .1, .2, .3}) {
    all.push_back({{{.pattern = "unstructured"}, density, LinearShape{1024, 1024, 1024}}, kLeastRatio});
  }
  return all;
}

void write_product(const LayerPair& pair, const std::filesystem::path& directory) {
  SafetensorsFile file;
  file.tensors["x"] = pair.x;
  file.tensors["weight"] = pair.dense->parameter("weight").value();
  write_file_atomically(real_vfs(), directory / "product.safetensors", encode_safetensors(file));
}

Value measure_against_torch(const SparseTorchTarget& target, const LibraryOptions& options) {
  const DecisionScope decisions({.measure = true});
  const ConstantWeights constant;
  const LayerPair pair = sparse_pair(target.of);
  const ScratchFolder folder("tessera_bench");
  write_product(pair, folder.path());
  const Contestant ours = layer_side(pair.name, pair.compressed, pair.x, Phase::inference);
  Value row = describe_sparse(target.of, pair, Phase::inference);
  row.set("library", "PyTorch CSR");
  row.set("target", target.least);
  compare_with_modes(
      row, self_timed(ours), sampled_values(ours),
      {.program = program_of(options, folder.path()),
       .sweep = {.least_runs = options.torch.sweep_runs, .settings = {kFirstSettings}, .tuned_malloc = true, .other_isa = true},
       .rounds = options.rounds,
       .aside = "dense"});
  row.set("decisions", tessera::to_value(decisions.taken()).at("decisions"));
  return row;
}

void check_torch(const LibraryOptions& options) {
  const ScratchFolder folder("tessera_bench");
  write_product(sparse_pair({{.pattern = "unstructured"}, 1, LinearShape{1, 2, 2}}), folder.path());
  TorchRival(program_of(options, folder.path()), kFirstSettings);
}

}  // namespace tessera::bench
