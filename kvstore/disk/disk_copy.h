#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "common/model/block_hash.h"
#include "kvstore/disk/disk_io.h"
#include "kvstore/disk/segment_file.h"
#include "kvstore/disk/segment_index.h"

namespace penstock {

// Is this record, with these bytes, a page of its segment, and the one asked
// for? DATA_LOSS if not. `asked` null: any.
absl::Status VerifyRecord(const RecordHeaderBytes& header,
                          const SegmentFile& file, uint32_t slot,
                          const TierKey* asked,
                          absl::Span<const absl::Span<const uint8_t>> page,
                          const BlockHasher& hasher);

iovec PieceOf(absl::Span<const uint8_t> bytes);

// A page on its way from one segment to another, with memory of its own. Read,
// then turned, then written; one thread at a time.
struct DiskCopy {
  BlockHash hash;
  SegmentSlot from, to;
  std::shared_ptr<SegmentFile> source, target;
  RecordHeaderBytes header = {};
  std::vector<uint8_t> bytes;

  DiskIo::Transfer ReadIt();
  // Verifies what was read and makes it a record of the target.
  absl::Status Turn(const BlockHasher& hasher);
  DiskIo::Transfer WriteIt();
};

}  // namespace penstock
