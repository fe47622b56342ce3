// The data block `name: text`.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/config/fields.h"
#include "train/data/dataset.h"
#include "train/data/text/text_dataset.h"

namespace tessera {

struct TextDataConfig {
  static constexpr const char* kName = "text";

  std::vector<std::string> files;
  std::vector<double> split{90, 5, 5};  // per cent of the tokens: train, val, test
  Value tokenizer = "bytes";
  std::int64_t sequence = 256;
  std::string task = "next-token";
  std::int64_t batch = 16;
  bool drop_last = true;
  void fields(Fields& f);
};

struct TextSplits {
  std::shared_ptr<const TextDataset> train, val, test;  // null: 0 %
};
// Tokenises the files unless their tokens are kept. File names are used as they stand. Throws ConfigError on splits that are too
// short and on a tokenizer without what the task needs, IoError on files.
TextSplits load_text(const TextDataConfig& config, std::uint64_t seed, const PieceSizes& sizes = {});

// File names of the block made those `change` gives, whatever else is wrong with it.
void for_each_text_file(Value& data, const std::function<void(std::string& file)>& change);

// That of a checkpoint whose data set was text. Throws ConfigError where its files are not those that the run had.
std::shared_ptr<const Tokenizer> tokenizer_of(const TextDescription& description);

}  // namespace tessera
