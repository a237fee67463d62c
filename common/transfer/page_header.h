#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/base/id.h"
#include "common/model/block_hash.h"
#include "common/model/block_ref.h"
#include "common/model/kv_layout.h"

namespace penstock {

// What precedes every page on a data connection, whatever carries it. Part of
// the wire contract, frozen by test vectors: all integers little-endian, 80
// bytes:
//   0 magic "PKVP"   4 version (u16)  6 header bytes (u16)
//   8 request (u64) 16 attempt (u32) 20 block index (i32)
//  24 incarnation of the destination (u64)
//  32 generation (u32)  36 layer first (u16) 38 layer last (u16)
//  40 payload length (u64)  48 payload checksum (u64)
//  56 sequence number on this connection (u64)
//  64 layout id (u64)
//  72 keyed checksum of bytes 0..71 (u64)
inline constexpr size_t kPageHeaderBytes = 80;
inline constexpr uint16_t kPageHeaderVersion = 1;

struct PageHeader {
  TransferId transfer;
  Incarnation destination;
  BlockRef block;
  LayerRange layers;
  uint64_t payload_bytes = 0;
  uint64_t payload_checksum = 0;
  uint64_t sequence = 0;
  LayoutId layout;
};

// Why a page is refused; each value is one check, counted by tests and metrics.
// Part of the wire contract (a nack carries it): append only.
enum class PageRefusal {
  kTruncated,
  kBadMagic,
  kBadVersion,
  kBadHeaderLength,
  kBadHeaderChecksum,
  kBadLayerRange,
  kBadLength,
  kWrongLayout,
  kWrongIncarnation,
  kNotPrepared,
  kStaleGeneration,
  kBadPayloadChecksum,
  kReplayedSequence,
};
inline constexpr int kPageRefusals = 13;

const char* PageRefusalName(PageRefusal refusal);
// The status of a refusal, with the refusal's name as payload
// "penstock/page-refusal".
absl::Status RefusalStatus(PageRefusal refusal, absl::string_view detail);
std::optional<PageRefusal> RefusalOf(const absl::Status& status);

// Precondition: 0 <= layers.first <= layers.last <= 65535.
std::array<uint8_t, kPageHeaderBytes> EncodePageHeader(
    const PageHeader& header, const BlockHasher& hasher);

// Is this a header, of a known version, written by a holder of the cluster key?
// kTruncated, kBadMagic, kBadVersion, kBadHeaderLength, kBadHeaderChecksum: the
// rest of a stream means nothing after one of these.
absl::StatusOr<PageHeader> ParsePageHeader(absl::Span<const uint8_t> bytes,
                                           const BlockHasher& hasher);

// Does a parsed header fit the receiver's layout? kWrongLayout, kBadLayerRange
// (empty or out of the layout), kBadLength (not what the layout says).
absl::Status CheckPageHeader(const PageHeader& header, const KvLayout& layout);

// Both: everything that can be checked without knowing the receiver's state.
absl::StatusOr<PageHeader> DecodePageHeader(absl::Span<const uint8_t> bytes,
                                            const KvLayout& layout,
                                            const BlockHasher& hasher);

}  // namespace penstock
