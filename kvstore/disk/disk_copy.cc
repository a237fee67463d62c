#include "kvstore/disk/disk_copy.h"

#include "common/base/status_macros.h"
#include "kvstore/core/page_label.h"

namespace penstock {

absl::Status VerifyRecord(const RecordHeaderBytes& header,
                          const SegmentFile& file, uint32_t slot,
                          const TierKey* asked,
                          absl::Span<const absl::Span<const uint8_t>> page,
                          const BlockHasher& hasher) {
  const StoreIdentity& store = file.store();
  ASSIGN_OR_RETURN(RecordHeader record,
                   DecodeRecordHeader(header, file.header_bytes(), slot,
                                      store.page_bytes, hasher));
  const PageLabel label{store.worker, record.key, record.page_bytes,
                        record.page_checksum};
  if (asked != nullptr) {
    RETURN_IF_ERROR(
        CheckLabel(label, store.worker, *asked, store.page_bytes, hasher));
  }
  return CheckBytes(label, page, hasher);
}

iovec PieceOf(absl::Span<const uint8_t> bytes) {
  return {const_cast<uint8_t*>(bytes.data()), bytes.size()};
}

DiskIo::Transfer DiskCopy::ReadIt() {
  bytes.resize(source->store().page_bytes);
  DiskIo::Transfer transfer;
  transfer.fd = source->fd();
  transfer.offset = SlotOffset(source->store(), from.slot);
  transfer.pieces = {PieceOf(header), PieceOf(bytes)};
  return transfer;
}

absl::Status DiskCopy::Turn(const BlockHasher& hasher) {
  const absl::Span<const uint8_t> page[] = {bytes};
  RETURN_IF_ERROR(
      VerifyRecord(header, *source, from.slot, nullptr, page, hasher));
  ASSIGN_OR_RETURN(RecordHeader record,
                   DecodeRecordHeader(header, source->header_bytes(), from.slot,
                                      source->store().page_bytes, hasher));
  if (record.key.hash != hash) {
    return absl::DataLossError("the record is of another block");
  }
  record.slot = to.slot;
  header = EncodeRecordHeader(record, target->header_bytes(), hasher);
  return absl::OkStatus();
}

DiskIo::Transfer DiskCopy::WriteIt() {
  DiskIo::Transfer transfer;
  transfer.fd = target->fd();
  transfer.offset = SlotOffset(target->store(), to.slot);
  transfer.write = true;
  transfer.pieces = {PieceOf(header), PieceOf(bytes)};
  return transfer;
}

}  // namespace penstock
