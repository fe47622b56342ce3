#include "bench/cases/product_torch.h"

#include "bench/cases/dense_cases.h"
#include "core/device/decisions.h"
#include "core/io/safetensors.h"
#include "core/io/scratch_folder.h"
#include "core/io/vfs.h"
#include "train/run/decisions_file.h"

namespace tessera::bench {

void write_matrices(const ProductShape& shape, const std::filesystem::path& directory) {
  SafetensorsFile file;
  file.tensors["a"] = random_tensor({shape.m, shape.k}, "a");
  file.tensors["b"] = random_tensor({shape.k, shape.n}, "b");
  write_file_atomically(real_vfs(), directory / "product.safetensors", encode_safetensors(file));
}

Value measure_torch_product(const ProductShape& shape, const LibraryOptions& options) {
  const DecisionScope decisions({.measure = true});
  const ScratchFolder folder("tessera_bench");
  write_matrices(shape, folder.path());
  const DenseCase dense = product_case(shape);
  Value row = Value::map();
  row.set("op", dense.op);
  row.set("shape", dense.shape);
  row.set("pass", dense.pass);
  row.set("library", "PyTorch");
  compare_with_modes(row, self_timed(dense.ours), sampled_values(dense.ours),
                     {.program = program_of(options, folder.path()),
                      .sweep = {.least_runs = options.torch.sweep_runs,
                                .one_thread = true,
                                .settings = first_settings(false),
                                .tuned_malloc = true},
                      .rounds = options.rounds});
  row.set("gflops", 1e-6 * dense.flops / row.at("tessera_ms").at("median").as_double());
  row.set("decisions", tessera::to_value(decisions.taken()).at("decisions"));
  return row;
}

void check_torch_product(const LibraryOptions& options) {
  const ScratchFolder folder("tessera_bench");
  write_matrices({2, 2, 2}, folder.path());
  TorchRival(program_of(options, folder.path()), first_settings(false).front());
}

}  // namespace tessera::bench
