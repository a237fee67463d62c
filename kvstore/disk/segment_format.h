#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/base/id.h"
#include "common/model/block_hash.h"
#include "kvstore/core/kv_tier.h"

namespace penstock {

// A segment file is its header, then records of one size back to back, only
// ever appended: a damaged or unfinished record costs that record and no other.
// All integers little-endian; every checksum is keyed with the cluster's
// secret.
//
// Header, 64 bytes:
//   0 magic "PKVS"   4 version (u16)   6 header bytes (u16)
//   8 layout id (u64)   16 content id (u64)   24 numerics id (u64)
//  32 page bytes (u64)  40 segment number (u64)  48 zero (u64)
//  56 checksum of bytes 0..55 (u64)
// Record, 120 bytes and the page:
//   0 magic "PKVR"   4 version (u16)   6 header bytes (u16)
//   8 block hash (u64)   16 parent hash (u64)
//  24 page bytes (u64)   32 checksum of the page (u64)
//  40 token ids (16 x i32)
// 104 slot of the segment (u32)  108 microseconds to recompute it (u32)
// 112 checksum of the segment's header and bytes 0..111 (u64)
inline constexpr size_t kSegmentHeaderBytes = 64;
inline constexpr size_t kRecordHeaderBytes = 120;
inline constexpr uint16_t kSegmentVersion = 1;

// Whose pages a store holds: pages of one are never those of another.
struct StoreIdentity {
  TierIdentity worker;
  uint64_t page_bytes = 0;
  friend bool operator==(const StoreIdentity&, const StoreIdentity&) = default;
};

struct SegmentHeader {
  StoreIdentity store;
  uint64_t number = 0;
};

struct RecordHeader {
  TierKey key;
  uint64_t page_bytes = 0;
  uint64_t page_checksum = 0;
  uint32_t slot = 0;  // a copy of a record at another place is none
  uint32_t recompute_micros = 0;
};

using SegmentHeaderBytes = std::array<uint8_t, kSegmentHeaderBytes>;
using RecordHeaderBytes = std::array<uint8_t, kRecordHeaderBytes>;

SegmentHeaderBytes EncodeSegmentHeader(const SegmentHeader& header,
                                       const BlockHasher& hasher);

// DATA_LOSS: it is none, or damaged, or written with another cluster key.
absl::StatusOr<SegmentHeader> DecodeSegmentHeader(
    absl::Span<const uint8_t> bytes, const BlockHasher& hasher);

// A record is bound to its segment and its slot there.
RecordHeaderBytes EncodeRecordHeader(const RecordHeader& record,
                                     const SegmentHeaderBytes& segment,
                                     const BlockHasher& hasher);

// DATA_LOSS: it is none, damaged, of another segment or slot, or its hash is
// not that of its parent and tokens.
absl::StatusOr<RecordHeader> DecodeRecordHeader(
    absl::Span<const uint8_t> bytes, const SegmentHeaderBytes& segment,
    uint32_t slot, uint64_t page_bytes, const BlockHasher& hasher);

// Where things lie in a segment of this store.
uint64_t SlotBytes(const StoreIdentity& store);
uint64_t SlotOffset(const StoreIdentity& store, uint32_t slot);

}  // namespace penstock
