// Answers that take long to find and depend on their question alone, kept between commands: in $TESSERA_CACHE (nothing is kept
// when it is set to an empty text), else $XDG_CACHE_HOME/tessera, else ~/.cache/tessera. An entry that is lost, damaged or cannot
// be written is found again and changes no result.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "core/config/value.h"

namespace tessera {

// Where they are kept; empty: nowhere.
std::filesystem::path cache_folder();

class AnswerCache {
 public:
  // `question` is everything that the answer depends on, such as the fingerprint of images or the processor that was timed.
  explicit AnswerCache(std::string_view question);

  std::optional<Value> find() const;
  void store(const Value& answer) const;

 private:
  std::filesystem::path file_;  // empty: keeps nothing
};

}  // namespace tessera
