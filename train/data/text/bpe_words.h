// The words that GPT-2's byte-level BPE merges within, as its pattern cuts them out of a text (Radford et al. 2019):
//   's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
#pragma once

#include <cstddef>
#include <string_view>

namespace tessera {

// The end of the word that begins at byte `at` < text.size(). Words follow each other without gaps.
std::size_t bpe_word_end(std::string_view text, std::size_t at);

}  // namespace tessera
