#pragma once

#include <sys/uio.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace penstock {

// Whole reads and writes of files, done elsewhere: short ones are gone on with,
// and the end of a file before the end of a read is DATA_LOSS.
class DiskIo {
 public:
  enum class Kind {
    kBest,     // io_uring where the system permits it, else threads
    kUring,    // io_uring (Linux)
    kThreads,  // preadv and pwritev in threads
  };

  struct Transfer {
    int fd = -1;  // open until `done` was called
    uint64_t offset = 0;
    std::vector<iovec> pieces;  // their memory too
    bool write = false;
  };
  // Anything else that waits for the disk: opening, syncing, removing.
  using Call = std::function<absl::Status()>;

  struct Task {
    std::variant<Transfer, Call> work;
    // Called once, on a thread of the DiskIo; may submit. The status is to be
    // moved on, not shared: a thread sanitizer cannot see how it is counted.
    std::function<void(absl::Status)> done;
  };

  // UNAVAILABLE: the system has or permits no io_uring (kUring only).
  static absl::StatusOr<std::unique_ptr<DiskIo>> Create(Kind kind);

  // As Finish, if that was not called.
  virtual ~DiskIo() = default;

  // Waits for everything that was submitted, and for what the ends of that
  // submit. Nothing may be submitted after it.
  virtual void Finish() = 0;

  // Never blocks; tasks run in any order. Any thread.
  virtual void Submit(Task task) = 0;

  virtual Kind kind() const = 0;  // kUring or kThreads
};

// What a failed system call on a file says: RESOURCE_EXHAUSTED for a full disk,
// else INTERNAL.
absl::Status DiskError(int error, absl::string_view doing);

// Drops `bytes` from the front of the pieces that are left.
void Advance(DiskIo::Transfer& transfer, uint64_t bytes);

}  // namespace penstock
