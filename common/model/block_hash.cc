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

// XXH3-64 of a parent's hash and a block's tokens, 72 bytes, taken apart: what
// the tokens alone decide is ready when the parent is, so that along a chain
// blocks only wait for each other with two multiplications.
class ChainStep {
 public:
  explicit ChainStep(absl::Span<const uint8_t> secret) {
    for (size_t i = 0; i < words_.size(); ++i) {
      for (int b = 7; b >= 0; --b) {
        words_[i] = words_[i] << 8 | secret[8 * i + b];
      }
    }
  }

  uint64_t Next(uint64_t parent, const TokenId* tokens) const {
    // Sixteen bytes each, by where they begin; the first token is at 8.
    const uint64_t own = kBytes * kPrime + Mix(tokens + 6, 8) +
                         Mix(tokens + 4, 10) + Mix(tokens + 2, 4) +
                         Mix(tokens + 8, 6) + Mix(tokens + 12, 2);
    uint64_t hash = own + Fold(parent ^ words_[0], Pair(tokens) ^ words_[1]);
    hash ^= hash >> 37;
    hash *= kAvalanche;
    hash ^= hash >> 32;
    return NonZero(hash);
  }

 private:
  static constexpr uint64_t kBytes = 8 + 4 * kBlockTokens;
  static_assert(kBytes == 72, "shorter and longer texts are hashed otherwise");
  static constexpr uint64_t kPrime = 0x9e3779b185ebca87;
  static constexpr uint64_t kAvalanche = 0x165667919e3779f9;

  static uint64_t Pair(const TokenId* tokens) {
    return uint64_t{static_cast<uint32_t>(tokens[0])} |
           uint64_t{static_cast<uint32_t>(tokens[1])} << 32;
  }
  static uint64_t Fold(uint64_t a, uint64_t b) {
    const unsigned __int128 product = static_cast<unsigned __int128>(a) * b;
    return static_cast<uint64_t>(product) ^
           static_cast<uint64_t>(product >> 64);
  }
  uint64_t Mix(const TokenId* tokens, size_t word) const {
    return Fold(Pair(tokens) ^ words_[word],
                Pair(tokens + 2) ^ words_[word + 1]);
  }

  std::array<uint64_t, 12> words_{};  // of the secret
};

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
  const ChainStep step(secret_.bytes());
  std::vector<BlockHash> hashes(tokens.size() / kBlockTokens);
  uint64_t parent = root.value();
  const TokenId* block = tokens.data();
  for (BlockHash& hash : hashes) {
    parent = step.Next(parent, block);
    hash = BlockHash(parent);
    block += kBlockTokens;
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
