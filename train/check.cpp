#include "train/check.h"

#include <functional>

#include "core/config/read.h"
#include "core/error.h"
#include "train/import_weights.h"

namespace tessera {
namespace {

class Checker {
 public:
  explicit Checker(const Experiment& experiment) : config_(experiment.config), marks_(experiment.marks) {}

  // Runs one check; whatever it throws becomes a problem at `path`.
  bool attempt(const std::string& path, const std::function<void()>& check) {
    try {
      check();
      return true;
    } catch (const Error& error) {
      add(path, error.what());
      return false;
    }
  }

  void add(const std::string& path, const std::string& message) {
    const auto mark = marks_.find(path);
    problems_.push_back({mark != marks_.end() ? mark->second : Mark{}, path, message});
  }

  void check_data() {
    attempt("data", [&] {
      data_ = load_data(config_.data, static_cast<std::uint64_t>(config_.seed));
      const Shape& images = data_->train.dataset->images.shape();
      input_ = Shape{1, images[1], images[2], images[3]};
      steps_per_epoch_ = steps_per_epoch(config_.data, data_->train.size());
    });
  }

  void check_model() {
    if (!data_) return;
    attempt("model", [&] {
      model_ = initial_model(real_vfs(), config_.model, input_, static_cast<std::uint64_t>(config_.seed)).model;
      const Shape output = model_->output_shape(input_);
      const auto classes = static_cast<std::int64_t>(data_->train.dataset->classes.size());
      TESSERA_CHECK(output.rank() == 2 && output[1] == classes, ConfigError, "the network gives ", output, " for one image; ",
                    config_.data.name, " has ", classes, " classes, so it must be [1, ", classes, "]");
    });
  }

  void check_stage(std::size_t index) {
    const StageConfig& stage = config_.stages[index];
    const std::string path = str("stages[", index, ']');
    if (stage.train && data_) {
      attempt(path + ".train", [&] {
        TESSERA_CHECK(stage.train->unit != Duration::Unit::percent, ConfigError, to_string(*stage.train),
                      " is a share of the stage itself; give epochs or steps");
        TESSERA_CHECK(stage.train->resolve(steps_per_epoch_, 0) >= 1, ConfigError, to_string(*stage.train),
                      " is less than one of the ", steps_per_epoch_, " steps of an epoch");
      });
    }
    if (stage.factorise && model_) {
      attempt(path + ".factorise", [&] { FactorisePass(*stage.factorise).prepare(*model_, input_); });
    }
  }

  void finish() const {
    if (!problems_.empty()) throw_config_error(problems_);
  }

 private:
  const ExperimentConfig& config_;
  const std::map<std::string, Mark>& marks_;
  std::vector<ConfigProblem> problems_;
  std::optional<DataSplits> data_;
  Shape input_;
  std::int64_t steps_per_epoch_ = 0;
  std::unique_ptr<Module> model_;
};

}  // namespace

void check_experiment(const Experiment& experiment) {
  Checker checker(experiment);
  checker.check_data();
  checker.check_model();
  for (std::size_t i = 0; i < experiment.config.stages.size(); ++i) checker.check_stage(i);
  checker.finish();
}

}  // namespace tessera
