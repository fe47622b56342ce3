#include "bench/loader_workload.h"

#include "bench/turns.h"
#include "core/support/error.h"

namespace tessera::bench {
namespace {

constexpr std::uint64_t kSeed = 1;

// ImageNet's statistics, which the rival's script also has.
Value list_of(std::initializer_list<double> numbers) { return Value::list(Value::List(numbers.begin(), numbers.end())); }

DataConfig config_of(const std::filesystem::path& root, const LoaderCase& timed) {
  ImageFolderConfig images;
  images.val = 0.0;
  images.test = "train";
  images.mean = list_of({0.485, 0.456, 0.406});
  images.std = list_of({0.229, 0.224, 0.225});
  if (timed.frame == "training") images.augment = {{.resized_crop = 0.25}, {.flip = "horizontal"}};
  return {.form = images, .root = root.string(), .batch = timed.batch};
}

LoaderOptions options_of(const DataConfig& config, const LoaderCase& timed) {
  TESSERA_CHECK(timed.frame == "training" || timed.frame == "evaluation", ConfigError, "frame is '", timed.frame,
                "'; needs training or evaluation");
  const int threads = static_cast<int>(timed.threads);
  return timed.frame == "training" ? training_options(config, kSeed, threads) : evaluation_options(timed.batch, threads);
}

}  // namespace

LoaderWorkload::LoaderWorkload(const std::filesystem::path& root, const LoaderCase& timed)
    : config_(config_of(root, timed)), options_(options_of(config_, timed)), data_(load_data(config_, kSeed)) {
  TESSERA_CHECK(images() % timed.batch == 0, ConfigError, images(), " images make no whole batches of ", timed.batch);
}

double LoaderWorkload::run() const {
  const double start = steady_seconds();
  Loader loader(data_.train, options_);
  for (std::int64_t batch = 0; batch < loader.batches_per_epoch(); ++batch) loader.next();
  return (steady_seconds() - start) * 1e3;
}

std::vector<float> LoaderWorkload::values(std::int64_t count) const {
  Loader loader(data_.train, evaluation_options(count, 0));
  return loader.next().input().permute({0, 3, 1, 2}).contiguous().to_vector<float>();
}

}  // namespace tessera::bench
