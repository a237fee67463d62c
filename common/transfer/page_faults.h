#pragma once

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "common/transfer/page_header.h"

namespace penstock {

// Where a test may meddle with a page on its way. Transports take one in their
// options; null, as in production, means none. Called on progress threads
// without a lock held, so an implementation may block to hold a page in flight.
class PageFaults {
 public:
  virtual ~PageFaults() = default;

  // Source: a page is about to leave. Returns the checksum that its header
  // (and the completion) will claim; `header.payload_checksum` is the true one.
  virtual uint64_t OnSend(
      const PageHeader& header,
      const std::vector<absl::Span<const uint8_t>>& payload) {
    return header.payload_checksum;
  }

  // Destination: a page lies in the arena and is not verified yet; its bytes
  // may be changed as a broken wire would.
  virtual void OnLanded(const PageHeader& header,
                        const std::vector<absl::Span<uint8_t>>& payload) {}
};

}  // namespace penstock
