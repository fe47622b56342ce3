// What `tessera predict` does: a trained network's answers to samples that nobody labelled.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/config/fields.h"
#include "core/io/vfs.h"

namespace tessera {

struct PredictOptions {
  std::string network;  // a run folder, or a file of `tessera export --layout tessera` or `tessera compress`
  std::vector<std::string> inputs = {};  // files and folders; train/tasks/prediction.h makes samples of them
  std::string text = {};  // answered behind them; "" = none
  std::string at = {};  // of a run: as EvalOptions::at
  std::int64_t top = 5;  // answers told of each sample, the likeliest first
  std::int64_t batch = 32;  // samples that go through the network together, where they have one shape
  std::string device = {};  // "" = the run's; auto for a file
  std::string precision = {};  // "" = the run's
  std::optional<std::int64_t> threads = {};  // none = the run's; all processors for a file
};

struct Answer {
  std::string answer;  // the name of a class, or the text of a token
  std::int64_t number = 0;  // its place among the scores
  double probability = 0;  // softmax of the scores
  std::string shown = {};  // its name for people

  void fields(Fields& f);
};

// The answers for one sample, or the error of an input that gives none.
struct Predicted {
  std::string input;  // the file's path
  std::optional<std::int64_t> sample;  // its number in a file that lists samples
  std::optional<std::string> error;  // why there is no answer; then there are none
  std::vector<Answer> answers;  // the likeliest first; of equal ones the first

  void fields(Fields& f);
};

struct PredictSummary {
  std::int64_t answers = 0;  // that there are to choose from: scores of a sample
  std::int64_t told = 0;  // samples with an answer
  std::int64_t failed = 0;
};

// In the order of the inputs, batch by batch. `scores`: all of the sample's, before the softmax; empty where there is an error.
using TakePredicted = std::function<void(const Predicted& predicted, std::span<const float> scores)>;

// What cannot be read, and a sample whose scores are no numbers, has an error and does not end the rest. The choices of a clock
// are those of the checkpoint or file; nothing is timed. Sets the threads of the process. Throws ConfigError on a network that
// does not say how new samples are read, on options that do not fit it, and where open_saved_run() refuses a run for any reason
// but its data, which is not read; IoError on a damaged file.
PredictSummary predict(Vfs& vfs, const PredictOptions& options, const TakePredicted& take);

// For people, without the line's end: "cat.jpg: cat 0.9312, dog 0.0688", "x.npy[3]: dog 0.8", "a.png: error: the file is empty".
std::string to_text(const Predicted& predicted);

}  // namespace tessera
