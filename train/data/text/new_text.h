// Texts that belong to no data set, as they are read by a network that predicts the next token.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "train/data/new_samples.h"
#include "train/data/text/tokenizer.h"

namespace tessera {

// The tokens of a text, at least one: an empty text becomes the token for the end of a text. `what` names it in messages. Throws
// ConfigError where it is empty and the tokenizer has no end of text, and on one that is no UTF-8 where the tokenizer needs it.
std::vector<TokenId> tokens_to_follow(const Tokenizer& tokenizer, const std::string& text, std::string_view what);

// A text as one sample, "tokens" i64 [t]: its last tokens, at most `longest`. `name` is that of its file. Throws IoError "name:
// reason" where tokens_to_follow() throws.
std::unique_ptr<NewSamples> new_text(const Tokenizer& tokenizer, const std::string& text, const std::string& name,
                                     std::int64_t longest);

// A file's content; of "-" what comes from standard input. Throws IoError "path: reason".
std::string read_text(const std::string& path);

}  // namespace tessera
