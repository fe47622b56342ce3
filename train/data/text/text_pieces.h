// Text files in pieces of bounded size that a tokenizer may take one by one.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>

#include "train/data/text/tokenizer.h"

namespace tessera {

struct PieceSizes {
  std::size_t usual = std::size_t{4} << 20;  // bytes read before a cut is looked for
  std::size_t longest = std::size_t{256} << 20;  // a file with more bytes than this without a place to cut is no text
};

// Hands out a file from its beginning to its end, each piece up to where `tokenizer` may cut: the pieces' tokens, one after the
// other, are those of the whole file. Holds one piece. Returns XXH3-128 of the file. Throws IoError naming the file where it
// cannot be read, is empty, has no place to cut, or, by offset and line, is no UTF-8 and the tokenizer needs it.
std::string for_each_piece(const std::string& path, const Tokenizer& tokenizer, const PieceSizes& sizes,
                           const std::function<void(std::string_view piece)>& take);

// XXH3-128 of a file, read in pieces. Throws IoError on one that cannot be read.
std::string hash_of_file(const std::string& path);

}  // namespace tessera
