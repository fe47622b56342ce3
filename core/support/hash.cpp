#include "core/support/hash.h"

#include <xxhash.h>

#include "core/support/error.h"

namespace tessera {
namespace {

std::string to_hex(XXH128_hash_t hash) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  XXH128_canonical_t canonical;
  XXH128_canonicalFromHash(&canonical, hash);
  std::string text;
  for (const unsigned char byte : canonical.digest) {
    text += kDigits[byte >> 4];
    text += kDigits[byte & 15];
  }
  return text;
}

}  // namespace

struct Xxh3Stream::Impl {
  std::unique_ptr<XXH3_state_t, decltype(&XXH3_freeState)> state{XXH3_createState(), &XXH3_freeState};
};

std::string xxh3_128(std::string_view bytes) { return to_hex(XXH3_128bits(bytes.data(), bytes.size())); }

Xxh3Stream::Xxh3Stream() : impl_(std::make_unique<Impl>()) {
  TESSERA_CHECK(impl_->state && XXH3_128bits_reset(impl_->state.get()) == XXH_OK, OutOfMemoryError,
                "xxh3: no memory for the hash state");
}

Xxh3Stream::~Xxh3Stream() = default;

void Xxh3Stream::update(std::string_view bytes) {
  TESSERA_CHECK(XXH3_128bits_update(impl_->state.get(), bytes.data(), bytes.size()) == XXH_OK, InternalError,
                "xxh3: update refused ", bytes.size(), " bytes");
}

std::string Xxh3Stream::hex() const { return to_hex(XXH3_128bits_digest(impl_->state.get())); }

}  // namespace tessera
