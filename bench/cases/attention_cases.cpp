#include "bench/cases/attention_cases.h"

#include <algorithm>

#include "bench/cases/dense_cases.h"
#include "bench/result_lines.h"
#include "core/autograd/backward.h"
#include "core/device/memory_history.h"
#include "core/io/safetensors.h"
#include "core/io/scratch_folder.h"
#include "core/io/vfs.h"
#include "core/ops/sparse_attention.h"

namespace tessera::bench {
namespace {

constexpr double kProducts = 7;

AttentionPatternPtr pattern_of(const AttentionCase& of) {
  if (of.block == 0) return nullptr;
  return std::make_shared<const AttentionPattern>(AttentionPatternOptions{.positions = of.positions,
                                                                          .heads = of.heads,
                                                                          .band = kBand,
                                                                          .density = kDensity,
                                                                          .block = of.block,
                                                                          .causal = true,
                                                                          .stream = RngStream(1, "attention_bench", "pattern")});
}

Var operand(const AttentionCase& of, const char* name) {
  return Var(random_tensor({1, of.positions, of.heads, of.width}, name), true);
}

}  // namespace

std::string format_of(const AttentionCase& of) {
  return of.block == 0 ? "dense" : of.block == 1 ? "elements" : str("blocks of ", of.block);
}

std::string row_of(const AttentionCase& of) {
  return str(format_of(of), " attention of 1x", of.positions, ", ", of.heads, " heads of ", of.width);
}

std::vector<AttentionCase> attention_cases() {
  return {{1024}, {2048}, {4096}, {4096, 16, 3.5}, {4096, 32}, {4096, 1, 2.3}, {12288, 16}, {12288, 1}};
}

AttentionWorkload::AttentionWorkload(const AttentionCase& of)
    : of_(of),
      q_(operand(of, "q")),
      k_(operand(of, "k")),
      v_(operand(of, "v")),
      grad_y_(random_tensor(q_.shape(), "grad_y")),
      pattern_(pattern_of(of)) {}

Contestant AttentionWorkload::step() const {
  const auto run = [q = q_, k = k_, v = v_, grad_y = grad_y_, pattern = pattern_] {
    backward(pattern ? sparse_attention(q, k, v, pattern) : attention(q, k, v, {.causal = true}), grad_y);
  };
  const auto clear = [q = q_, k = k_, v = v_] {
    for (const Var& x : {q, k, v}) x.set_grad({});
  };
  return {"tessera, " + format_of(of_), run, clear, [q = q_] { return q.grad(); }};
}

double AttentionWorkload::flops() const {
  const Var y = pattern_ ? sparse_attention(q_, k_, v_, pattern_) : attention(q_, k_, v_, {.causal = true});
  return kProducts * static_cast<double>(y.node()->op->multiply_adds(y.shape()));  // the macs of two = the flops of one
}

std::int64_t AttentionWorkload::bytes() const {
  const Contestant side = step();
  side.prepare();
  const MemoryHistory history(Device::cpu());
  side.run();
  return static_cast<std::int64_t>(std::ranges::max(history.in_use()) - history.in_use().front());
}

void AttentionWorkload::write_inputs(const std::filesystem::path& directory) const {
  SafetensorsFile file;
  file.tensors["q"] = q_.value();
  file.tensors["k"] = k_.value();
  file.tensors["v"] = v_.value();
  file.tensors["grad_y"] = grad_y_;
  write_file_atomically(real_vfs(), directory / "attention.safetensors", encode_safetensors(file));
}

Value AttentionWorkload::describe() const {
  Value row = Value::map();
  row.set("format", format_of(of_));
  row.set("shape", str("1x", of_.positions, ", ", of_.heads, " heads of ", of_.width));
  row.set("phase", "training");
  row.set("memory_bytes", bytes());
  if (!pattern_) return row;
  row.set("band", kBand);
  row.set("density", kDensity);
  row.set("pattern_bytes", pattern_->bytes());
  return row;
}

Value measure_attention(const AttentionCase& of, const TurnOptions& turns, double peak_gflops) {
  const AttentionWorkload workload(of);
  Value row = workload.describe();
  const Contestant side = workload.step();
  const Samples ms = time_in_turns(std::span(&side, 1), turns).front();
  const double flops = workload.flops();  // read from a recorded forward
  std::vector<double> shares;
  for (const double each : ms.rounds) shares.push_back(1e-6 * flops / each / peak_gflops);
  const Summary share = summarise(shares);
  row.set("rounds", turns.rounds);
  row.set("tessera_ms", to_value(ms));
  row.set("ratio", to_value(share));
  row.set("gflops", share.median * peak_gflops);
  row.set("peak_share", share.median);
  row.set("fma_peak_gflops", peak_gflops);
  return row;
}

Value measure_sparse_attention(const AttentionCase& of, const TurnOptions& turns, double peak_gflops) {
  AttentionCase dense_case = of;
  dense_case.block = 0;
  const AttentionWorkload sparse(of), dense(dense_case);
  Value row = sparse.describe();
  const std::vector<Contestant> sides{sparse.step(), dense.step()};
  const std::vector<Samples> samples = time_in_turns(sides, turns);
  const double ms = samples[0].median();
  const double flops = sparse.flops();  // read from a recorded forward
  row.set("rounds", turns.rounds);
  row.set("tessera_ms", to_value(samples[0]));
  row.set("rival", timed(sides[1].name, samples[1]));
  row.set("ratio", ratio_value(samples[1], samples[0]));
  row.set("pair_ratio", dense.flops() / flops);
  row.set("gflops", 1e-6 * flops / ms);
  row.set("peak_share", 1e-6 * flops / ms / peak_gflops);
  row.set("fma_peak_gflops", peak_gflops);
  row.set("dense_memory_bytes", dense.bytes());
  if (of.least > 0) row.set("target", of.least);
  return row;
}

Value measure_torch_attention(const AttentionCase& of, const LibraryOptions& options) {
  const AttentionWorkload workload(of);
  const ScratchFolder folder("tessera_bench");
  workload.write_inputs(folder.path());
  const Contestant ours = workload.step();
  Value row = workload.describe();
  row.set("library", "PyTorch");
  compare_with_modes(row, self_timed(ours), sampled_values(ours),
                     {.program = program_of(options, folder.path()),
                      .sweep = {.least_runs = options.torch.sweep_runs, .settings = first_settings(false), .tuned_malloc = true},
                      .rounds = options.rounds});
  return row;
}

void check_torch_attention(const LibraryOptions& options) {
  const ScratchFolder folder("tessera_bench");
  AttentionWorkload({.positions = 2, .heads = 1, .width = 1}).write_inputs(folder.path());
  TorchRival(program_of(options, folder.path()), first_settings(false).front());
}

}  // namespace tessera::bench
