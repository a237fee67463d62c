#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"

namespace penstock {

// Bytes on their way into a non-blocking socket: small ones are owned, pages
// are borrowed from the arena. Owned by a connection; progress thread only.
class OutQueue {
 public:
  void Append(absl::Span<const uint8_t> bytes);

  // `bytes` stay as they are until sent or detached.
  void Borrow(absl::Span<const uint8_t> bytes);

  // Copies what is still borrowed: after this nobody else's memory is read.
  void Detach();

  // Sends until all is gone or the socket takes no more. UNAVAILABLE: the
  // connection is broken.
  absl::Status Flush(int fd);

  bool empty() const { return chunks_.empty(); }
  size_t bytes() const { return bytes_; }
  size_t chunks() const { return chunks_.size(); }

 private:
  struct Chunk {
    std::vector<uint8_t> owned;
    absl::Span<const uint8_t> borrowed;
    size_t done = 0;  // bytes sent

    absl::Span<const uint8_t> rest() const {
      return (borrowed.empty() ? absl::MakeConstSpan(owned) : borrowed)
          .subspan(done);
    }
  };

  void Sent(size_t bytes);

  std::deque<Chunk> chunks_;
  size_t bytes_ = 0;
};

}  // namespace penstock
