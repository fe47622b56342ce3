// What `tessera data check` finds of a text: how long files and splits are in bytes, tokens and windows, what its tokenizer does
// not know, files that are there twice.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/config/fields.h"
#include "train/data/text/text_config.h"

namespace tessera {

struct TextFileReport {
  std::string path;
  std::int64_t bytes = 0;
  std::int64_t tokens = 0;
  std::int64_t unknown = 0;  // tokens that stand for text which the tokenizer has no pieces for
  std::string same_as;  // an earlier file of the same bytes; "" without one
  void fields(Fields& f);
};

struct TextSplitReport {
  std::string name;  // "train", "val", "test"
  std::int64_t tokens = 0;
  std::int64_t windows = 0;
  void fields(Fields& f);
};

struct TextReport {
  Value tokenizer;  // as the experiment file names it
  std::int64_t vocabulary = 0;
  std::vector<TextFileReport> files;
  std::vector<TextSplitReport> splits;  // without those of 0 %

  bool clean() const;  // no file is there twice, so that no split has another's text
  void fields(Fields& f);
};

// Reads and tokenises all files. Throws what load_text() throws.
TextReport check_text(const TextDataConfig& config, std::uint64_t seed);

std::string to_text(const TextReport& report);

}  // namespace tessera
