// The key `tokenizer` of a data block, and the whole list of tokenizers that it can name:
//   bytes | {bpe: {vocab: F, merges: F}} | {wordpiece: {vocab: F, lower_case: true}} | {sentencepiece: F}
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/config/read.h"
#include "train/data/file_name.h"
#include "train/data/text/tokenizer.h"

namespace tessera {

// Appends what is wrong with the key's value; no file is looked at. A function for FieldSpec::check.
void check_tokenizer(const Value& value, std::string_view path, std::vector<ConfigProblem>& problems);

// Reads the files that a valid value names. `with_mask`: a tokenizer without files gets a mask token. Throws ConfigError on
// another value, IoError on files.
std::shared_ptr<const Tokenizer> make_tokenizer(const Value& value, bool with_mask = false);

// Changes every file name in the value, whatever else is wrong with it.
void for_each_tokenizer_file(Value& value, const ChangeFile& change);

}  // namespace tessera
