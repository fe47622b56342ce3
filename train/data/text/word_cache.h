// Where a text's words stand among its tokens, so that a word that comes again is not cut up again.
#pragma once

#include <cstddef>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "train/data/text/tokenizer.h"

namespace tessera {

// A cache for one list of tokens, to which the words' tokens are appended one after the other. The words must outlive the cache.
class WordCache {
 public:
  explicit WordCache(std::vector<TokenId>& ids) : ids_(ids) {}

  // Appends a word's tokens: those that it got before, or what `encode_word(word, ids)` appends.
  template <class EncodeWord>
  void append(std::string_view word, const EncodeWord& encode_word) {
    const std::size_t begin = ids_.size();
    if (const auto known = places_.find(word); known != places_.end()) {
      const auto [first, size] = known->second;
      for (std::size_t i = first; i < first + size; ++i) {
        const TokenId id = ids_[i];  // by value: the list may move
        ids_.push_back(id);
      }
      return;
    }
    encode_word(word, ids_);
    if (places_.size() < kWords && word.size() <= kLongest) places_.emplace(word, Place{begin, ids_.size() - begin});
  }

 private:
  static constexpr std::size_t kWords = 1 << 17;  // a text's frequent words come early
  static constexpr std::size_t kLongest = 256;
  struct Place {
    std::size_t first;
    std::size_t size;
  };

  std::vector<TokenId>& ids_;
  std::unordered_map<std::string_view, Place> places_;
};

}  // namespace tessera
