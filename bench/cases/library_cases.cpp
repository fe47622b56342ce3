#include "bench/cases/library_cases.h"

#include <algorithm>
#include <optional>

#include "bench/cases/dense_cases.h"
#include "bench/result_lines.h"
#include "core/device/constant_weights.h"
#include "core/device/decisions.h"
#include "core/io/safetensors.h"
#include "core/io/scratch_folder.h"
#include "core/io/vfs.h"
#include "core/linalg/tt.h"
#include "core/support/error.h"
#include "train/run/decisions_file.h"

namespace tessera::bench {
namespace {

bool is_conv(const FactoredCase& of) { return std::holds_alternative<ConvShape>(of.shape); }

// Draws the cores of the library's train of a convolution. Sets the dense layer's weight to the tensor that they compose.
std::vector<std::pair<std::string, Tensor>> own_train(const LibraryCase& of, Module& dense) {
  const ConvShape& shape = std::get<ConvShape>(of.of.shape);
  const std::vector<std::int64_t> sizes{shape.in, shape.kernel, shape.kernel, shape.out};
  TESSERA_CHECK(of.train.size() + 1 == sizes.size(), InternalError,
                "library case: a train over in, height, width, out has 3 ranks, not ", of.train.size());
  std::vector<std::pair<std::string, Tensor>> cores;
  linalg::TensorTrain train;
  for (std::size_t k = 0; k < sizes.size(); ++k) {
    const std::int64_t left = k == 0 ? 1 : of.train[k - 1], right = k < of.train.size() ? of.train[k] : 1;
    train.cores.push_back(random_tensor({left, sizes[k], right}, str("core", k + 1)));
    cores.emplace_back(str("core", k + 1), train.cores.back());
  }
  dense.parameter("weight").set_value(linalg::reconstruct(train).permute({3, 1, 2, 0}).contiguous());
  return cores;
}

std::vector<std::pair<std::string, Tensor>> factors_of(const Module& layer) {
  std::vector<std::pair<std::string, Tensor>> factors;
  for (const auto& factor : layer.parameters()) factors.emplace_back(factor->name(), factor->value());
  return factors;
}

}  // namespace

TorchProgram program_of(const LibraryOptions& options, const std::filesystem::path& inputs) {
  return {options.torch.python, options.torch.script, inputs, options.threads};
}

std::string_view library_of(const LibraryCase& of) { return of.of.format == "svd" ? "PyTorch" : "TensorLy-Torch"; }

std::vector<LibraryTarget> library_targets() {
  const ConvShape conv{8, 256, 256, 14, 3};
  const auto tt_linear = [](std::int64_t rank) {
    return FactoredCase{"tt", {{"r1", rank}}, LinearShape{32, 1024, 1024}, ModesConfig{.out = {32, 32}, .in = {32, 32}}};
  };
  return {{{tt_linear(64)}, 3.0},
          {{tt_linear(128)}, 3.0},
          {{{"tucker2", {{"out", 64}, {"in", 64}}, conv}}, 1.2},
          {{{"cp", {{"rank", 64}}, conv}}, 1.2},
          {{{"tt", {{"r1", 16}, {"r2", 57}, {"r3", 56}, {"r4", 16}}, conv}, {64, 64, 64}}, 1.2},
          {{{"svd", {{"rank", 128}}, LinearShape{32, 1024, 1024}}}, 1.1}};
}

LibraryWorkload::LibraryWorkload(const LibraryCase& of, Phase phase) : of_(of), phase_(phase), sides_(make_sides(of.of)) {
  known_ = of.train.empty() ? sides_.factored : sides_.dense;
  factors_ = of.train.empty() ? factors_of(*sides_.factored) : own_train(of, *sides_.dense);
}

void LibraryWorkload::write_inputs(const std::filesystem::path& directory) const {
  SafetensorsFile file;
  file.tensors.insert(factors_.begin(), factors_.end());
  file.tensors["x"] = sides_.x;
  file.tensors["grad_y"] = gradient_of_output(*sides_.factored, sides_.x.shape());
  Value layer = Value::map();
  layer.set("kind", sides_.factored->kind());
  layer.set("phase", phase_ == Phase::inference ? "forward" : "training");
  layer.set("config", sides_.factored->config());
  write_file_atomically(real_vfs(), directory / "layer.safetensors", encode_safetensors(file));
  write_file_atomically(real_vfs(), directory / "layer.json", to_json(layer));
}

std::vector<float> LibraryWorkload::values() const { return sampled_values(layer_side("known", known_, sides_.x, phase_)); }

std::vector<double> LibraryWorkload::run(std::int64_t count) const {
  return self_timed(layer_side("ours", sides_.factored, sides_.x, phase_))(count);
}

Value LibraryWorkload::describe() const {
  Value row = describe_factored(sides_, phase_);
  const Cost ours = total_cost(*sides_.factored, sides_.x.shape());
  Cost theirs = ours;
  if (!of_.train.empty()) {
    theirs = {};
    for (const auto& [name, core] : factors_) theirs.parameters += core.numel();
    const std::int64_t side = std::get<ConvShape>(of_.of.shape).out_size();
    theirs.macs = theirs.parameters * side * side;
  }
  row.set("library", library_of(of_));
  std::string ranks;
  for (const std::int64_t rank : of_.train) ranks += str(ranks.empty() ? "" : " ", rank);
  row.set("library_ranks", of_.train.empty() ? row.at("ranks").as_string() : ranks);
  row.set("parameters", ours.parameters);
  row.set("library_parameters", theirs.parameters);
  row.set("macs", ours.macs);
  row.set("library_macs", theirs.macs);
  return row;
}

Value measure_library(const LibraryCase& of, Phase phase, const LibraryOptions& options) {
  const DecisionScope decisions({.measure = true});
  std::optional<ConstantWeights> constant;
  if (phase == Phase::inference) constant.emplace();
  const LibraryWorkload workload(of, phase);
  const ScratchFolder folder("tessera_bench");
  workload.write_inputs(folder.path());
  Value row = workload.describe();
  const ModeSweepOptions sweep{.least_runs = options.torch.sweep_runs,
                               .one_thread = true,
                               .settings = first_settings(is_conv(of.of)),
                               .tuned_malloc = true};
  compare_with_modes(row, [&](std::int64_t count) { return workload.run(count); }, workload.values(),
                     {program_of(options, folder.path()), sweep, options.rounds});
  row.set("decisions", tessera::to_value(decisions.taken()).at("decisions"));
  return row;
}

void check_library(const LibraryOptions& options) {
  const ScratchFolder folder("tessera_bench");
  LibraryWorkload({{"svd", {{"rank", 1}}, LinearShape{1, 2, 2}}}, Phase::inference).write_inputs(folder.path());
  TorchRival(program_of(options, folder.path()), first_settings(false).front());
}

}  // namespace tessera::bench
