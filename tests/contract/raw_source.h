#pragma once

#include <sys/uio.h>

#include <cstdint>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "common/model/block_hash.h"
#include "common/transfer/page_header.h"
#include "common/transfer/socket/frames.h"
#include "common/transfer/socket/unique_fd.h"
#include "tests/contract/transport_worker.h"

namespace penstock {

// A source that speaks the data connection by hand, so that it can break the
// rules. Blocking, with a time limit on every read; one thread.
class RawSource {
 public:
  // Dials; CHECKs that it works.
  explicit RawSource(const TransportAddress& address);

  void Send(absl::Span<const uint8_t> bytes);
  // With a descriptor beside the bytes.
  void SendWith(absl::Span<const uint8_t> bytes, int fd);

  // The next short frame; empty: the connection was closed.
  std::vector<uint8_t> Read();
  bool Closed() { return Read().empty(); }

  // The handshake as the rules want it; -1: no memory is passed. The verdict.
  absl::Status Greet(int memory = -1);
  // A good page header.
  PageHeader Page(TransferId transfer, BlockRef block,
                  absl::Span<const uint8_t> payload);
  std::vector<uint8_t> Encoded(const PageHeader& header) const;
  // The fate of a page; CHECKs that it is an ack.
  PageAck Ack();

 private:
  const TransportAddress address_;
  const BlockHasher hasher_{HashSecret("conformance")};
  UniqueFd fd_;
  uint64_t sequence_ = 0;
};

}  // namespace penstock
