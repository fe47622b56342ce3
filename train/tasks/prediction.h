// What a network says of samples that nobody labelled: the part of `tessera predict` that its task knows.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/tensor.h"
#include "train/data/found_file.h"
#include "train/data/new_samples.h"

namespace tessera {

class Prediction {
 public:
  virtual ~Prediction() = default;

  // The files that a path of the command line stands for, in their order. Throws IoError "path: reason".
  virtual std::vector<FoundFile> files(const std::string& path) const { return {{path}}; }
  // May be called from several threads at once. Throws IoError "file: reason". What it gives must not outlive this.
  virtual std::unique_ptr<NewSamples> open(const std::string& file) const = 0;
  // Opens a text that the command line gives, called `name`. Throws ConfigError where the network reads no text.
  virtual std::unique_ptr<NewSamples> open_text(const std::string& text, const std::string& name) const = 0;

  // How many answers there are to choose from, and what the one with this number is called.
  virtual std::int64_t answers() const = 0;
  virtual std::string name_of(std::int64_t number) const = 0;
  virtual std::string shown(const std::string& name) const = 0;  // for people, on one line
  // The scores in the network's output for a batch of n samples: f32 [n, answers], on the host, logits.
  virtual Tensor scores(const Tensor& output) const = 0;
};

}  // namespace tessera
