#include "train/data/builtin.h"

#include <algorithm>
#include <concepts>

#include "core/support/error.h"
#include "core/support/log.h"

namespace tessera {
namespace {

template <class Form>
concept OfImages = std::derived_from<Form, ImageConfig>;

template <class Form>
concept NamesFiles = requires(Value& data, const ChangeFile& change) {
  Form::for_each_file(data, change);
};

template <OfImages Form>
ImageSplits images_of(const Form& form, const std::string& root, std::uint64_t seed) {
  ImageSplits splits = form.read_images(root, seed, nullptr);
  for (const std::string& warning : splits.warnings) log_warning(warning);
  const std::int64_t channels = splits.train.images->sample_shape().dim(2);
  splits.normalization = form.normalization(channels, [&] { return form.measure(splits.train); });
  return splits;
}

// Calls `use` with the form of the data set. Throws ConfigError if it is not a data set of images.
template <class Use>
ImageSplits with_images(const DataConfig& config, const Use& use) {
  const auto use_form = [&]<class Form>(const Form& form) -> ImageSplits {
    if constexpr (OfImages<Form>) {
      return use(form);
    } else {
      throw ConfigError(str("data set ", config.name(), " has no images"));
    }
  };
  return std::visit(use_form, config.form);
}

}  // namespace

void DataConfig::fields(Fields& f) {
  const auto shared = [this](Fields& inner) {
    inner.add("root", root,
              {.help = "folder of the data files, relative to the experiment file",
               .example = "${TESSERA_DATA}/cifar-10",
               .observable = "bytes"});
    inner.add("batch", batch,
              {.help = "samples of one training step", .range = at_least(1), .example = "64", .observable = "plan"});
    inner.add("drop_last", drop_last, {.help = "leave out the last, smaller training batch of an epoch", .observable = "plan"});
  };
  f.choose("name", form, {.help = "data set", .example = "image-folder", .observable = "plan"}, shared);
  const RootUse use = std::visit([]<class Form>(const Form&) { return Form::kRoot; }, form);
  f.require(use != RootUse::needed || !root.empty(), "root", "needs the folder of the data files");
  f.require(use != RootUse::none || root.empty(), "root", str(name(), " is drawn, not read; remove root"));
}

const std::vector<std::string_view>& dataset_names() {
  static const std::vector<std::string_view> names = [] {
    std::vector<std::string_view> all = all_form_names(DataForm());
    std::ranges::sort(all);
    return all;
  }();
  return names;
}

void for_each_data_file(Value& data, const ChangeFile& change) {
  if (!data.is_map()) return;
  Value* const root = data.find("root");
  if (root != nullptr && is_file_name(*root)) return change_file_name(*root, change);
  const Value* const name = data.find("name");
  DataForm form;
  if (name == nullptr || !name->is_string() || !set_form(form, name->as_string())) return;
  const auto change_files = [&]<class Form>(const Form&) {
    if constexpr (NamesFiles<Form>) Form::for_each_file(data, change);
  };
  std::visit(change_files, form);
}

std::string_view task_name(const DataConfig& config) {
  return std::visit([](const auto& form) { return form.task_name(); }, config.form);
}

Shape sample_shape(const DataConfig& config) {
  return std::visit([](const auto& form) { return form.sample_shape(); }, config.form);
}

Shape sample_shape(const DataSplits& data) { return sample_shape(*data.train.dataset); }

DataSplits load_data(const DataConfig& config, std::uint64_t seed) {
  const auto load = [&]<class Form>(const Form& form) -> DataSplits {
    if constexpr (OfImages<Form>) {
      return labelled_images(images_of(form, config.root, seed), form, seed);
    } else {
      return form.load(config.root, seed);
    }
  };
  return std::visit(load, config.form);
}

ImageSplits load_images(const DataConfig& config, std::uint64_t seed) {
  return with_images(config, [&](const auto& form) { return images_of(form, config.root, seed); });
}

ImageSplits load_readable_images(const DataConfig& config, std::uint64_t seed, std::vector<BadFile>& bad) {
  return with_images(config, [&](const auto& form) { return form.read_images(config.root, seed, &bad); });
}

LoaderOptions training_options(const DataConfig& config, std::uint64_t seed, int threads) {
  LoaderOptions options;
  options.batch = config.batch;
  options.drop_last = config.drop_last;
  options.seed = seed;
  options.threads = threads;
  return options;
}

}  // namespace tessera
