#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "common/model/block_hash.h"
#include "kvstore/core/kv_tier.h"

namespace penstock {

// What is kept beside a page's bytes, so that whoever reads them back can tell
// that they are what was asked for. Each tier has an encoding of its own.
struct PageLabel {
  TierIdentity identity;
  TierKey key;
  uint64_t bytes = 0;
  uint64_t checksum = 0;  // BlockHasher::ChecksumPieces of them

  friend bool operator==(const PageLabel&, const PageLabel&) = default;
};

// The label of a page that is about to be stored.
PageLabel LabelPage(const TierIdentity& identity, const TierKey& key,
                    absl::Span<const absl::Span<const uint8_t>> page,
                    const BlockHasher& hasher);

// Whether a label that came back is that of the page asked for: the one that
// its own parent and tokens make, equal to `asked`, with `bytes` bytes.
// DATA_LOSS says what differs. To be called before its bytes are read.
absl::Status CheckLabel(const PageLabel& label, const TierIdentity& identity,
                        const TierKey& asked, uint64_t bytes,
                        const BlockHasher& hasher);

// Whether the bytes, where they are to be used, are those of the label:
// DATA_LOSS otherwise. To be called after they were read.
absl::Status CheckBytes(const PageLabel& label,
                        absl::Span<const absl::Span<const uint8_t>> page,
                        const BlockHasher& hasher);

}  // namespace penstock
