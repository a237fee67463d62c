#pragma once

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "common/transfer/arena_pages.h"
#include "common/transfer/socket/unique_fd.h"

namespace penstock {

// A source's arena as the destination sees it: mapped read-only. Owned by the
// connection that it came with.
class PeerMemory {
 public:
  // FAILED_PRECONDITION: not a memfd, or one that could shrink under the
  // mapping (which would kill the reader), or too small for one block.
  static absl::StatusOr<std::unique_ptr<PeerMemory>> Map(
      UniqueFd fd, const KvLayout& layout);

  ~PeerMemory();
  PeerMemory(const PeerMemory&) = delete;
  PeerMemory& operator=(const PeerMemory&) = delete;

  // Only to be read.
  const ArenaPages& pages() const { return pages_; }

 private:
  PeerMemory(absl::Span<uint8_t> bytes, const KvLayout& layout)
      : pages_({bytes, -1}, layout) {}

  const ArenaPages pages_;
};

}  // namespace penstock
