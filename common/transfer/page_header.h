#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "absl/status/statusor.h"
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
const char* PageRefusalName(PageRefusal refusal);
// The status of a refusal, with the refusal's name as payload
// "penstock/page-refusal".
absl::Status RefusalStatus(PageRefusal refusal, absl::string_view detail);
std::optional<PageRefusal> RefusalOf(const absl::Status& status);

std::array<uint8_t, kPageHeaderBytes> EncodePageHeader(
    const PageHeader& header, const BlockHasher& hasher);

// Checks everything that can be checked without knowing the receiver's state:
// size, magic, version, checksum, layer range within `layout`, payload length
// equal to what the layout says for that range, layout id.
absl::StatusOr<PageHeader> DecodePageHeader(absl::Span<const uint8_t> bytes,
                                            const KvLayout& layout,
                                            const BlockHasher& hasher);

}  // namespace penstock
