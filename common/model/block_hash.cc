#include "common/model/block_hash.h"

#include <cstring>
#include <memory>

#include "common/base/check.h"
// Routers hash every prompt: as a call it takes a sixth longer.
#define XXH_INLINE_ALL
#include "xxhash.h"

namespace penstock {
namespace {

static_assert(sizeof(TokenId) == 4);

// Appends an integer little-endian, whatever the host's order.
template <typename T>
void Append(std::string& out, T value) {
  for (size_t i = 0; i < sizeof(T); ++i) {
    out.push_back(static_cast<char>(static_cast<uint64_t>(value) >> (8 * i)));
  }
}

// The same to memory that is there; returns what follows.
template <typename T>
uint8_t* Put(uint8_t* out, T value) {
  for (size_t i = 0; i < sizeof(T); ++i) {
    out[i] = static_cast<uint8_t>(value >> (8 * i));
  }
  return out + sizeof(T);
}

// Length first, so that ("ab", "c") and ("a", "bc") differ.
void AppendText(std::string& out, absl::string_view text) {
  Append<uint32_t>(out, text.size());
  out.append(text.data(), text.size());
}

// 0 is "no hash": moved away from, so that an Id stays truthful.
uint64_t NonZero(uint64_t hash) { return hash == 0 ? 1 : hash; }

}  // namespace

HashSecret::HashSecret(absl::string_view cluster_key) {
  for (size_t i = 0; i < bytes_.size() / 8; ++i) {
    uint64_t word =
        XXH3_64bits_withSeed(cluster_key.data(), cluster_key.size(), i + 1);
    for (int b = 0; b < 8; ++b) bytes_[i * 8 + b] = word >> (8 * b);
  }
}

BlockHash BlockHasher::Root(const Scope& scope) const {
  std::string text;
  Append<uint64_t>(text, scope.model.value());
  AppendText(text, scope.adapter);
  AppendText(text, scope.tenant);
  AppendText(text, scope.cache_salt);
  return BlockHash(NonZero(XXH3_64bits_withSecret(text.data(), text.size(),
                                                  secret_.bytes().data(),
                                                  secret_.bytes().size())));
}

BlockHash BlockHasher::Next(BlockHash parent,
                            absl::Span<const TokenId> tokens) const {
  CHECK(tokens.size() == kBlockTokens);
  std::array<uint8_t, 8 + 4 * kBlockTokens> text;
  uint8_t* end = Put(text.data(), parent.value());
  for (TokenId token : tokens) end = Put(end, static_cast<uint32_t>(token));
  return BlockHash(NonZero(XXH3_64bits_withSecret(text.data(), text.size(),
                                                  secret_.bytes().data(),
                                                  secret_.bytes().size())));
}

std::vector<BlockHash> BlockHasher::Chain(
    BlockHash root, absl::Span<const TokenId> tokens) const {
  std::vector<BlockHash> hashes;
  hashes.reserve(tokens.size() / kBlockTokens);
  for (size_t at = 0; at + kBlockTokens <= tokens.size(); at += kBlockTokens) {
    root = Next(root, tokens.subspan(at, kBlockTokens));
    hashes.push_back(root);
  }
  return hashes;
}

uint64_t BlockHasher::Checksum(absl::Span<const uint8_t> bytes) const {
  return XXH3_64bits_withSecret(bytes.data(), bytes.size(),
                                secret_.bytes().data(), secret_.bytes().size());
}

uint64_t BlockHasher::ChecksumPieces(
    absl::Span<const absl::Span<const uint8_t>> pieces) const {
  if (pieces.size() == 1) return Checksum(pieces[0]);
  std::unique_ptr<XXH3_state_t, decltype(&XXH3_freeState)> state(
      XXH3_createState(), &XXH3_freeState);
  CHECK(state != nullptr) << "out of memory";
  XXH3_64bits_reset_withSecret(state.get(), secret_.bytes().data(),
                               secret_.bytes().size());
  for (absl::Span<const uint8_t> piece : pieces) {
    XXH3_64bits_update(state.get(), piece.data(), piece.size());
  }
  return XXH3_64bits_digest(state.get());
}

}  // namespace penstock
