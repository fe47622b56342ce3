// The form `name: text` of the data block.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/config/fields.h"
#include "train/data/file_name.h"
#include "train/data/root_use.h"
#include "train/data/splits.h"
#include "train/data/text/text_dataset.h"

namespace tessera {

struct TextDataConfig {
  static constexpr const char* kName = "text";
  static constexpr RootUse kRoot = RootUse::optional;  // of the files here and in `tokenizer`

  std::vector<std::string> files;
  std::vector<double> split{90, 5, 5};  // per cent of the tokens: train, val, test
  Value tokenizer = "bytes";
  std::int64_t sequence = 256;
  std::string task{name_of(TextTask::next_token)};
  void fields(Fields& f);
  // Changes the file names in a block of this form, whatever else is wrong with it.
  static void for_each_file(Value& data, const ChangeFile& change);

  std::string_view task_name() const { return task; }
  Shape sample_shape() const { return {1, sequence}; }
  // Throws what load_text() throws.
  DataSplits load(const std::string& root, std::uint64_t seed) const;
  TextDataConfig below(const std::string& root) const;  // its file names behind `root`, unless that is empty
};

struct TextSplits {
  std::shared_ptr<const TextDataset> train, val, test;  // null: 0 %
};
// Tokenises the files, whose names are used as they stand, unless their tokens are kept. Throws ConfigError on splits that are
// too short and on a tokenizer without what the task needs, IoError on files.
TextSplits load_text(const TextDataConfig& config, std::uint64_t seed, const PieceSizes& sizes = {});

// The tokenizer of a checkpoint whose data set was text. Throws ConfigError where its files are not those that the run had.
std::shared_ptr<const Tokenizer> tokenizer_of(const TextDescription& description);

}  // namespace tessera
