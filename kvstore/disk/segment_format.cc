#include "kvstore/disk/segment_format.h"

#include <cstring>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "common/transfer/little_endian.h"

namespace penstock {
namespace {

constexpr uint8_t kSegmentMagic[4] = {'P', 'K', 'V', 'S'};
constexpr uint8_t kRecordMagic[4] = {'P', 'K', 'V', 'R'};
constexpr size_t kSegmentChecksumAt = kSegmentHeaderBytes - 8;
constexpr size_t kTokensAt = 40;
constexpr size_t kSlotAt = kTokensAt + 4 * kBlockTokens;
constexpr size_t kRecordChecksumAt = kRecordHeaderBytes - 8;
constexpr size_t kRecomputeAt = kSlotAt + 4;
static_assert(kRecomputeAt + 4 == kRecordChecksumAt);

absl::Status Bad(absl::string_view what, absl::string_view why) {
  return absl::DataLossError(absl::StrCat(what, " header: ", why));
}

// Magic, version and length, which every header begins with.
void EncodeStart(const uint8_t (&magic)[4], size_t bytes, uint8_t* out) {
  std::memcpy(out, magic, sizeof(magic));
  StoreLittleEndian<uint16_t>(kSegmentVersion, out + 4);
  StoreLittleEndian<uint16_t>(bytes, out + 6);
}

absl::Status CheckStart(absl::string_view what, const uint8_t (&magic)[4],
                        size_t length, absl::Span<const uint8_t> bytes) {
  if (bytes.size() < length) return Bad(what, "cut short");
  if (std::memcmp(bytes.data(), magic, sizeof(magic)) != 0) {
    return Bad(what, "not one");
  }
  if (LoadLittleEndian<uint16_t>(&bytes[4]) != kSegmentVersion ||
      LoadLittleEndian<uint16_t>(&bytes[6]) != length) {
    return Bad(what, "of another version");
  }
  return absl::OkStatus();
}

uint64_t RecordChecksum(absl::Span<const uint8_t> record,
                        const SegmentHeaderBytes& segment,
                        const BlockHasher& hasher) {
  const absl::Span<const uint8_t> pieces[] = {absl::MakeConstSpan(segment),
                                              record.first(kRecordChecksumAt)};
  return hasher.ChecksumPieces(pieces);
}

}  // namespace

SegmentHeaderBytes EncodeSegmentHeader(const SegmentHeader& header,
                                       const BlockHasher& hasher) {
  SegmentHeaderBytes out = {};
  EncodeStart(kSegmentMagic, out.size(), out.data());
  StoreLittleEndian<uint64_t>(header.store.worker.layout.value(), &out[8]);
  StoreLittleEndian<uint64_t>(header.store.worker.content.value(), &out[16]);
  StoreLittleEndian<uint64_t>(header.store.worker.numerics.value(), &out[24]);
  StoreLittleEndian<uint64_t>(header.store.page_bytes, &out[32]);
  StoreLittleEndian<uint64_t>(header.number, &out[40]);
  StoreLittleEndian<uint64_t>(
      hasher.Checksum(absl::MakeConstSpan(out).first(kSegmentChecksumAt)),
      &out[kSegmentChecksumAt]);
  return out;
}

absl::StatusOr<SegmentHeader> DecodeSegmentHeader(
    absl::Span<const uint8_t> bytes, const BlockHasher& hasher) {
  if (absl::Status start =
          CheckStart("segment", kSegmentMagic, kSegmentHeaderBytes, bytes);
      !start.ok()) {
    return start;
  }
  if (LoadLittleEndian<uint64_t>(&bytes[kSegmentChecksumAt]) !=
      hasher.Checksum(bytes.first(kSegmentChecksumAt))) {
    return Bad("segment", "damaged, or written with another cluster key");
  }
  SegmentHeader header;
  header.store.worker.layout = LayoutId(LoadLittleEndian<uint64_t>(&bytes[8]));
  header.store.worker.content =
      ContentId(LoadLittleEndian<uint64_t>(&bytes[16]));
  header.store.worker.numerics =
      NumericsId(LoadLittleEndian<uint64_t>(&bytes[24]));
  header.store.page_bytes = LoadLittleEndian<uint64_t>(&bytes[32]);
  header.number = LoadLittleEndian<uint64_t>(&bytes[40]);
  return header;
}

RecordHeaderBytes EncodeRecordHeader(const RecordHeader& record,
                                     const SegmentHeaderBytes& segment,
                                     const BlockHasher& hasher) {
  RecordHeaderBytes out = {};
  EncodeStart(kRecordMagic, out.size(), out.data());
  StoreLittleEndian<uint64_t>(record.key.hash.value(), &out[8]);
  StoreLittleEndian<uint64_t>(record.key.parent.value(), &out[16]);
  StoreLittleEndian<uint64_t>(record.page_bytes, &out[24]);
  StoreLittleEndian<uint64_t>(record.page_checksum, &out[32]);
  for (int i = 0; i < kBlockTokens; ++i) {
    StoreLittleEndian<int32_t>(record.key.tokens[i], &out[kTokensAt + 4 * i]);
  }
  StoreLittleEndian<uint32_t>(record.slot, &out[kSlotAt]);
  StoreLittleEndian<uint32_t>(record.recompute_micros, &out[kRecomputeAt]);
  StoreLittleEndian<uint64_t>(RecordChecksum(out, segment, hasher),
                              &out[kRecordChecksumAt]);
  return out;
}

absl::StatusOr<RecordHeader> DecodeRecordHeader(
    absl::Span<const uint8_t> bytes, const SegmentHeaderBytes& segment,
    uint32_t slot, uint64_t page_bytes, const BlockHasher& hasher) {
  if (absl::Status start =
          CheckStart("record", kRecordMagic, kRecordHeaderBytes, bytes);
      !start.ok()) {
    return start;
  }
  if (LoadLittleEndian<uint64_t>(&bytes[kRecordChecksumAt]) !=
      RecordChecksum(bytes, segment, hasher)) {
    return Bad("record", "damaged, or of another segment");
  }
  RecordHeader record;
  record.key.hash = BlockHash(LoadLittleEndian<uint64_t>(&bytes[8]));
  record.key.parent = BlockHash(LoadLittleEndian<uint64_t>(&bytes[16]));
  record.page_bytes = LoadLittleEndian<uint64_t>(&bytes[24]);
  record.page_checksum = LoadLittleEndian<uint64_t>(&bytes[32]);
  for (int i = 0; i < kBlockTokens; ++i) {
    record.key.tokens[i] = LoadLittleEndian<int32_t>(&bytes[kTokensAt + 4 * i]);
  }
  record.slot = LoadLittleEndian<uint32_t>(&bytes[kSlotAt]);
  record.recompute_micros = LoadLittleEndian<uint32_t>(&bytes[kRecomputeAt]);
  if (record.slot != slot) return Bad("record", "of another place");
  if (record.page_bytes != page_bytes) return Bad("record", "wrong length");
  if (record.key.hash != hasher.Next(record.key.parent, record.key.tokens)) {
    return Bad("record", "its hash is not that of its tokens");
  }
  return record;
}

uint64_t SlotBytes(const StoreIdentity& store) {
  return kRecordHeaderBytes + store.page_bytes;
}

uint64_t SlotOffset(const StoreIdentity& store, uint32_t slot) {
  return kSegmentHeaderBytes + slot * SlotBytes(store);
}

}  // namespace penstock
