#include "train/report/predict.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <iterator>
#include <memory>
#include <numeric>
#include <utility>

#include "core/cpu/parallel.h"
#include "core/device/constant_weights.h"
#include "core/device/decisions.h"
#include "core/device/precision.h"
#include "core/support/error.h"
#include "core/support/text.h"
#include "layers/scores.h"
#include "train/config/utf8.h"
#include "train/run/decisions_file.h"
#include "train/run/environment.h"
#include "train/run/import_weights.h"
#include "train/run/named_fault.h"
#include "train/run/run_settings.h"
#include "train/run/saved_model.h"
#include "train/run/saved_point.h"
#include "train/run/saved_use.h"
#include "train/tasks/builtin.h"
#include "train/tasks/softmax_shares.h"

namespace tessera {
namespace {

constexpr std::array<std::string_view, 3> kAllowed{"threads.compute", "device", "precision"};

struct Network {
  std::unique_ptr<Module> model;
  Shape input;
  NetworkUse use;
  std::string device = "auto";
  std::int64_t threads = 0;
};

Network network_of_file(Vfs& vfs, const PredictOptions& options) {
  TESSERA_CHECK(options.at.empty(), ConfigError, "predict: --at chooses a checkpoint of a run; ", options.network, " is a file");
  FileNetwork file = file_network(vfs, options.network);
  TESSERA_CHECK(file.use, ConfigError, "predict: ", options.network,
                " does not tell what its network learnt; tessera export RUN --layout tessera writes a file that does");
  Network network{std::move(file.model), file.input, std::move(*file.use)};
  if (!options.device.empty()) network.device = options.device;
  if (!options.precision.empty()) network.use.precision = options.precision;
  network.threads = options.threads.value_or(0);
  return network;
}

Network network_of_run(Vfs& vfs, const PredictOptions& options) {
  const RunFolder run = RunFolder::open(vfs, options.network);
  std::vector<std::string> overrides;
  if (!options.device.empty()) overrides.push_back("device=" + options.device);
  if (!options.precision.empty()) overrides.push_back("precision=" + options.precision);
  if (options.threads) overrides.push_back(str("threads.compute=", *options.threads));
  const ExperimentConfig config = settings_of(run, overrides, kAllowed, "predict");
  const Checkpoint checkpoint = load_at(vfs, run, options.at, "predict");
  return {evaluation_model(checkpoint), input_of(checkpoint.manifest), use_of_run(config, checkpoint.manifest), config.device,
          config.threads.compute};
}

// The likeliest answers. Throws NumericError if the scores give a share that is not a number.
std::vector<Answer> likeliest(std::span<const float> scores, std::int64_t top, const Prediction& prediction) {
  const std::vector<double> shares = softmax_shares(scores);
  TESSERA_CHECK(std::ranges::none_of(shares, [](double share) { return std::isnan(share); }), NumericError,
                "the network's scores have a NaN or Inf");
  std::vector<std::int64_t> order(scores.size());
  std::iota(order.begin(), order.end(), std::int64_t{0});
  const auto told = static_cast<std::size_t>(std::min<std::int64_t>(top, std::ssize(order)));
  const auto score = [&](std::int64_t number) { return scores[static_cast<std::size_t>(number)]; };
  std::partial_sort(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(told), order.end(),
                    [&](std::int64_t a, std::int64_t b) { return score(a) != score(b) ? score(a) > score(b) : a < b; });
  std::vector<Answer> answers;
  for (std::size_t i = 0; i < told; ++i) {
    const std::string name = prediction.name_of(order[i]);
    answers.push_back({name, order[i], shares[static_cast<std::size_t>(order[i])], prediction.shown(name)});
  }
  return answers;
}

// Gathers samples of one shape until they fill a batch. Rows are reported in the order in which they came.
class Batches {
 public:
  Batches(Network& network, const Prediction& prediction, DType compute, const PredictOptions& options, const TakePredicted& take)
      : network_(network), prediction_(prediction), options_(options), take_(take), compute_(compute) {}

  void fail(const std::string& input, std::string_view reason, std::optional<std::int64_t> sample = {}) {
    const std::string prefix = input + ": ";
    if (reason.starts_with(prefix)) reason.remove_prefix(prefix.size());
    rows_.push_back({{input, sample, std::string(reason), {}}, false});
    if (gathered_ == 0) flush();
  }

  void add(const std::string& input, NewSamples& samples) {
    if (gathered_ > 0 && !(batch_.fields().front().shape == samples.field().shape)) flush();
    for (std::int64_t i = 0; i < samples.size(); ++i) {
      const std::optional<std::int64_t> number = samples.numbered() ? std::optional(i) : std::nullopt;
      if (gathered_ == 0) batch_ = Batch::empty(std::array{samples.field()}, options_.batch);
      try {
        samples.read(i, batch_.input().slice(0, gathered_, gathered_ + 1).reshape(samples.field().shape));
      } catch (const IoError& error) {
        fail(input, error.what(), number);
        continue;
      }
      rows_.push_back({{input, number, {}, {}}, true});
      if (++gathered_ == options_.batch) flush();
    }
  }

  // Computes the gathered samples and reports all rows.
  void flush() {
    Tensor scores;
    if (gathered_ > 0) {
      const Batch batch = batch_.slice(0, gathered_).to(device_of(*network_.model));
      scores = prediction_.scores(tessera::scores(*network_.model, batch.parts(), Context{}, compute_).value());
    }
    gathered_ = 0;
    const auto width = static_cast<std::size_t>(prediction_.answers());
    const float* next = scores.defined() ? scores.data<float>() : nullptr;
    for (Row& row : std::exchange(rows_, {})) {
      tell(row, row.gathered ? std::span(std::exchange(next, next + width), width) : std::span<const float>());
    }
  }

  PredictSummary summary() const { return {prediction_.answers(), told_, failed_}; }

 private:
  struct Row {
    Predicted predicted;
    bool gathered;  // its scores are the next row of the batch's scores
  };

  void tell(Row& row, std::span<const float> scores) {
    try {
      if (row.gathered) row.predicted.answers = likeliest(scores, options_.top, prediction_);
    } catch (const NumericError& error) {
      row.predicted.error = error.what();
      scores = {};
    }
    ++(row.predicted.error ? failed_ : told_);
    take_(row.predicted, scores);
  }

  Network& network_;
  const Prediction& prediction_;
  const PredictOptions& options_;
  const TakePredicted& take_;
  DType compute_;
  Batch batch_;
  std::int64_t gathered_ = 0;
  std::vector<Row> rows_;
  std::int64_t told_ = 0, failed_ = 0;
};

// An opened file, or the reason why it could not be opened.
struct Opened {
  std::unique_ptr<NewSamples> samples;
  std::string fault;
};

// Opens the files on the OpenMP threads: opening an image costs as much as a small network's answer to it.
std::vector<Opened> open_all(std::span<const FoundFile> files, const Prediction& prediction) {
  std::vector<Opened> opened(files.size());
  cpu::parallel_for(std::ssize(opened), 1, [&](std::int64_t begin, std::int64_t end) {
    for (auto i = static_cast<std::size_t>(begin); i < static_cast<std::size_t>(end); ++i) {
      opened[i].fault = files[i].fault;
      if (!opened[i].fault.empty()) continue;
      try {
        opened[i].samples = prediction.open(files[i].path);
      } catch (const IoError& error) {
        opened[i].fault = error.what();
      }
    }
  });
  return opened;
}

void take(const std::string& name, const Opened& opened, Batches& batches) {
  if (opened.samples) {
    batches.add(name, *opened.samples);
  } else {
    batches.fail(name, opened.fault);
  }
}

void take_files(std::span<const FoundFile> files, const Prediction& prediction, std::int64_t at_once, Batches& batches) {
  for (std::size_t begin = 0; begin < files.size(); begin += static_cast<std::size_t>(at_once)) {
    const auto part = files.subspan(begin, std::min(static_cast<std::size_t>(at_once), files.size() - begin));
    std::vector<Opened> opened = open_all(part, prediction);
    for (std::size_t i = 0; i < part.size(); ++i) take(part[i].path, opened[i], batches);
  }
}

void take_inputs(const PredictOptions& options, const Prediction& prediction, Batches& batches) {
  std::vector<FoundFile> files;  // of consecutive inputs, so that many single files are opened at once, too
  for (const std::string& input : options.inputs) {
    try {
      std::ranges::move(prediction.files(input), std::back_inserter(files));
    } catch (const IoError& error) {
      take_files(files, prediction, options.batch, batches);
      files.clear();
      batches.fail(input, error.what());
    }
  }
  take_files(files, prediction, options.batch, batches);
}

constexpr const char* kTextName = "--text";

// Called before any file is answered, because the network may not read text.
Opened open_text(const PredictOptions& options, const Prediction& prediction) {
  Opened text;
  if (options.text.empty()) return text;
  try {
    text.samples = prediction.open_text(options.text, kTextName);
  } catch (const IoError& error) {
    text.fault = error.what();
  }
  return text;
}

}  // namespace

PredictSummary predict(Vfs& vfs, const PredictOptions& options, const TakePredicted& take_predicted) {
  TESSERA_CHECK(!options.inputs.empty() || !options.text.empty(), ConfigError, "predict: needs files, folders or --text");
  TESSERA_CHECK(options.top >= 1 && options.batch >= 1, ConfigError, "predict: top is ", options.top, ", batch is ",
                options.batch, "; both must be at least 1");
  TESSERA_CHECK(std::ranges::count(options.inputs, "-") <= 1, ConfigError,
                "predict: - is given more than once; standard input is read once");
  const bool is_file = std::filesystem::is_regular_file(options.network);
  Network network = is_file ? network_of_file(vfs, options) : network_of_run(vfs, options);
  const NetworkUse& use = network.use;
  const Device device = resolve_device(network.device);
  const std::unique_ptr<Prediction> prediction = naming_the_place(options.network, [&] {
    return builtin_task(use.task).prediction(use.data, network.input, network.model->output_shape(network.input));
  });
  const auto precision = [&] { return compute_dtype(use.precision, device); };
  const DType compute = options.precision.empty() ? naming_the_place(options.network, precision) : precision();
  set_compute_threads(network.threads);
  move_to(*network.model, device);
  const NoGrad no_grad;
  const Tf32Products products(use.precision == "tf32");
  const DecisionScope fixed({.known = naming_the_place(options.network, [&] { return decisions_of(use); })});
  const ConstantWeights constant;
  const Opened text = open_text(options, *prediction);
  Batches batches(network, *prediction, compute, options, take_predicted);
  take_inputs(options, *prediction, batches);
  if (!options.text.empty()) take(kTextName, text, batches);
  batches.flush();
  return batches.summary();
}

void Answer::fields(Fields& f) {
  f.add("answer", answer, {.help = "the name of a class, or the text of a token"});
  f.add("number", number, {.help = "its place among the scores"});
  f.add("probability", probability, {.help = "softmax of the scores"});
}

void Predicted::fields(Fields& f) {
  f.add_computed("input", valid_utf8(input), {.help = "the file's path"});
  f.add("sample", sample, {.help = "its number in a file that lists samples; null in others", .nullable = true});
  f.add("error", error, {.help = "why there is no answer, or null", .nullable = true});
  f.add("answers", answers, {.help = "the likeliest first"});
}

std::string to_text(const Predicted& predicted) {
  std::string text = printable(predicted.input);
  if (predicted.sample) text += str('[', *predicted.sample, ']');
  if (predicted.error) return str(text, ": error: ", printable(*predicted.error));
  const char* before = ": ";
  for (const Answer& answer : predicted.answers) {
    text += str(std::exchange(before, ", "), answer.shown, ' ', formatted("%.4f", answer.probability));
  }
  return text;
}

}  // namespace tessera
