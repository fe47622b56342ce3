// The data block of an experiment file, and the whole list of data sets it can name.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "core/config/fields.h"
#include "train/data/cifar.h"
#include "train/data/file_name.h"
#include "train/data/glyphs.h"
#include "train/data/idx.h"
#include "train/data/image_folder.h"
#include "train/data/loader.h"
#include "train/data/splits.h"
#include "train/data/text/text_config.h"

namespace tessera {

// A form of the block: a kind of data set with the keys that it alone has. Its names stand as core/config/forms.h says. It has
//   static constexpr RootUse kRoot          whether it has `root`
//   void fields(Fields&)                    its keys
//   std::string_view task_name() const      what a network learns from it, see train/tasks/builtin.h
//   Shape sample_shape() const              the shape of what the network reads of one sample, [1, ...]; no file is looked at
//   DataSplits load(const std::string& root, std::uint64_t seed) const
// A form that derives from ImageConfig has read_images() in place of load(). A form whose own keys name files has
//   static void for_each_file(Value& data, const ChangeFile& change)      changes their names in a block of this form
using DataForm = std::variant<GlyphsConfig, CifarConfig, IdxConfig, ImageFolderConfig, TextDataConfig>;

struct DataConfig {
  DataForm form = {};
  std::string root = {};  // folder of the files; "" where there are none
  std::int64_t batch = 128;
  bool drop_last = true;
  void fields(Fields& f);

  std::string_view name() const { return form_name(form); }
};

// "cifar10", "cifar100", "fashion-mnist", "glyphs", "image-folder", "mnist", "text".
const std::vector<std::string_view>& dataset_names();

// Changes those file names in a data block that are relative to the experiment file: its root or, without a root, the files that
// its form names. It does so whatever else is wrong with the block.
void for_each_data_file(Value& data, const ChangeFile& change);

std::string_view task_name(const DataConfig& config);
Shape sample_shape(const DataConfig& config);
Shape sample_shape(const DataSplits& data);  // of one sample, [1, ...]

// Reads or draws a data set; root is used as it stands. Throws ConfigError on statistics or augmentations that do not fit the
// images, IoError on missing or damaged files.
DataSplits load_data(const DataConfig& config, std::uint64_t seed);

// The images that load_data() makes batches of. Throws ConfigError where samples are no images.
ImageSplits load_images(const DataConfig& config, std::uint64_t seed);
// The same without statistics. For an image-folder every file is decoded; files that fail are left out and listed in `bad`.
ImageSplits load_readable_images(const DataConfig& config, std::uint64_t seed, std::vector<BadFile>& bad);

// Shuffled, augmented batches of the training split.
LoaderOptions training_options(const DataConfig& config, std::uint64_t seed, int threads);

}  // namespace tessera
