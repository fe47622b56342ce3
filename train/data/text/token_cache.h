// The tokens of text files, made once: in the folder of AnswerCache, under what they depend on, so that the next run maps them.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/io/mapped_file.h"
#include "core/io/scratch_folder.h"
#include "core/io/vfs.h"
#include "train/data/text/text_pieces.h"
#include "train/data/text/token_file.h"
#include "train/data/text/tokenizer.h"

namespace tessera {

// The tokens of files, one after the other, with the token for the end of a text between two files where the tokenizer has one.
// They are mapped, not held in memory.
class TokenStore {
 public:
  // What the file at `path` holds. Throws IoError on one that is not whole or not of this key.
  TokenStore(const std::string& path, std::string_view key, std::unique_ptr<ScratchFolder> folder = nullptr);

  const TokenFile& tokens() const noexcept { return tokens_; }

 private:
  std::unique_ptr<ScratchFolder> folder_;  // a temporary one, removed with the file in it; else null
  MappedFile file_;
  TokenFile tokens_;
};

// Everything that the tokens depend on: XXH3-128 over the files' contents, in their order, and the tokenizer with its library.
std::string token_key(const std::vector<std::string>& files, const Tokenizer& tokenizer);

// Writes the file of tokens at `path`, which is there in whole or not at all, also after a power cut. Throws IoError on what
// cannot be read or written, and on files that are not those of the key.
void write_tokens(Vfs& vfs, const std::string& path, std::string_view key, const std::vector<std::string>& files,
                  const Tokenizer& tokenizer, const PieceSizes& sizes = {});

// The tokens that the cache keeps, or new ones where it keeps none or they are damaged. Where nothing can be kept they are in a
// folder for temporary files. Throws IoError on text files as for_each_piece() does, and where there is no room.
std::shared_ptr<const TokenStore> tokens_of(const std::vector<std::string>& files, const Tokenizer& tokenizer,
                                            const PieceSizes& sizes = {});

}  // namespace tessera
