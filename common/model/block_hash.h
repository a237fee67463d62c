#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/base/id.h"
#include "common/model/kv_layout.h"

namespace penstock {

// 192 bytes for XXH3, stretched from the cluster key with XXH3 in counter mode.
class HashSecret {
 public:
  explicit HashSecret(absl::string_view cluster_key);
  absl::Span<const uint8_t> bytes() const { return bytes_; }

 private:
  std::array<uint8_t, 192> bytes_;
};

// Keyed, chained 64-bit hashes of full 16-token blocks. The algorithm is part
// of the wire contract and frozen by test vectors: hash(block) =
// XXH3-64 with the secret over (parent hash, 16 token ids), little-endian. The
// chain starts at a root made of model revision, adapter, tenant and salt.
class BlockHasher {
 public:
  explicit BlockHasher(const HashSecret& secret) : secret_(secret) {}

  struct Scope {
    ContentId model;
    std::string adapter;
    std::string tenant;
    std::string cache_salt;
  };
  BlockHash Root(const Scope& scope) const;

  // Precondition: tokens.size() == kBlockTokens.
  BlockHash Next(BlockHash parent, absl::Span<const TokenId> tokens) const;

  // Hashes of all full blocks of `tokens`; a partial tail is ignored.
  std::vector<BlockHash> Chain(BlockHash root,
                               absl::Span<const TokenId> tokens) const;

  // Checksum of bytes that travel (pages, wire headers): XXH3-64 keyed.
  uint64_t Checksum(absl::Span<const uint8_t> bytes) const;

  // The same over the concatenation of `pieces`, without copying them.
  uint64_t ChecksumPieces(
      absl::Span<const absl::Span<const uint8_t>> pieces) const;

 private:
  HashSecret secret_;
};

}  // namespace penstock
