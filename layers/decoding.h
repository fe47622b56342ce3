// Networks that write text: one position more at a time, with keys and values of the positions in front of it kept.
#pragma once

#include <string>

#include "core/nn/module.h"

namespace tessera {

// Whether the network has a layer of attention.
bool has_attention(Module& network);
// Path of the first layer of attention in which a position sees those after it; empty where none does.
std::string attention_that_looks_ahead(Module& network);
// Why the network cannot go on after positions that it has read (core/nn/attention_cache.h); empty where it can. It needs tokens
// to read, attention in which no position sees those after it, and an answer for each position.
std::string why_not_decode(Module& network);
// Throws ConfigError with that reason, for `who` asked for decode.
void require_decoding(Module& network, const std::string& who);

}  // namespace tessera
