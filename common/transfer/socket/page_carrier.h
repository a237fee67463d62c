#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/transfer/arena_pages.h"
#include "common/transfer/kv_transport.h"
#include "common/transfer/page_header.h"
#include "common/transfer/socket/out_queue.h"
#include "common/transfer/socket/unique_fd.h"

namespace penstock {

// How the bodies of one source's pages come in: what follows each header on
// the connection. Owned by the connection; progress thread only.
class BodyReader {
 public:
  using Pieces = std::vector<absl::Span<uint8_t>>;

  virtual ~BodyReader() = default;

  // How many bytes follow this header.
  virtual uint64_t BodyBytes(const PageHeader& header) const = 0;

  // Where these bytes go when the page may land at `page`; valid until Finish.
  virtual Pieces Targets(const Pieces& page) = 0;

  // They have come: now the payload must lie in `page`. An error means that
  // the source makes no sense; its connection is closed.
  virtual absl::Status Finish(const PageHeader& header, const Pieces& page) = 0;
};

// The only thing in which kinds of socket transport differ: addresses, and how
// a page's bytes cross. Owned by the transport; progress thread only, except
// where noted.
class PageCarrier {
 public:
  virtual ~PageCarrier() = default;

  struct Listening {
    UniqueFd fd;          // non-blocking
    std::string address;  // what peers dial
  };
  // Called once, by the thread that creates the transport.
  virtual absl::StatusOr<Listening> Listen() = 0;

  // A non-blocking socket whose connection may still be in progress.
  virtual absl::StatusOr<UniqueFd> Dial(const std::string& address) = 0;

  // Sets a new connection up, on either side.
  virtual void Adopt(int fd) {}

  // Travels with the hello; -1: nothing does.
  virtual int passed_fd() const { return -1; }

  // For an accepted connection; `passed` is what came with its hello.
  // FAILED_PRECONDITION: that is not what this kind needs.
  virtual absl::StatusOr<std::unique_ptr<BodyReader>> OpenReader(
      UniqueFd passed) = 0;

  // Appends what follows the header of this write; what it borrows stays
  // valid while the write is in flight.
  virtual void AppendBody(const PageWrite& write, const ArenaPages& pages,
                          OutQueue& out) const = 0;
};

}  // namespace penstock
