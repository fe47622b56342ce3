// The forward that infer_bench times: a named network with its batch norms folded, answering one batch of synthetic images.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/nn/module.h"

namespace tessera::bench {

struct InferCase {
  std::string model;  // "resnet18"
  std::int64_t side;  // of the square colour images
  std::int64_t classes;
  std::int64_t batch;
};

class InferWorkload {
 public:
  // `change` is made to the initialised network before its norms are folded.
  explicit InferWorkload(const InferCase& timed, const std::function<void(std::unique_ptr<Module>&)>& change = {});

  // The network before folding as an export for PyTorch, and the batch as x.safetensors (x, NHWC).
  void write_inputs(const std::filesystem::path& directory);

  std::vector<float> logits();
  // Milliseconds of `count` forwards of the folded network, and of the network as it was trained. Under a ConstantWeights scope
  // of the caller's for as long as it wants reordered weights kept.
  std::vector<double> run(std::int64_t count);
  std::vector<double> run_unfolded(std::int64_t count);

 private:
  std::unique_ptr<Module> network_;
  std::unique_ptr<Module> folded_;
  Tensor x_;
};

}  // namespace tessera::bench
