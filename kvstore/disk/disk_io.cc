#include "kvstore/disk/disk_io.h"

#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "kvstore/disk/thread_io.h"
#include "kvstore/disk/uring_io.h"

namespace penstock {

absl::StatusOr<std::unique_ptr<DiskIo>> DiskIo::Create(Kind kind) {
  if (kind != Kind::kThreads) {
    auto uring = UringIo::Create();
    if (uring.ok() || kind == Kind::kUring) return uring;
  }
  return std::make_unique<ThreadIo>(ThreadIo::kDefaultThreads);
}

absl::Status DiskError(int error, absl::string_view doing) {
  const std::string message = absl::StrCat(doing, ": ", std::strerror(error));
  if (error == ENOSPC || error == EDQUOT) {
    return absl::ResourceExhaustedError(message);
  }
  return absl::InternalError(message);
}

void Advance(DiskIo::Transfer& transfer, uint64_t bytes) {
  transfer.offset += bytes;
  size_t whole = 0;
  while (whole < transfer.pieces.size() &&
         bytes >= transfer.pieces[whole].iov_len) {
    bytes -= transfer.pieces[whole++].iov_len;
  }
  transfer.pieces.erase(transfer.pieces.begin(),
                        transfer.pieces.begin() + whole);
  if (bytes == 0) return;
  iovec& piece = transfer.pieces.front();
  piece.iov_base = static_cast<char*>(piece.iov_base) + bytes;
  piece.iov_len -= bytes;
}

}  // namespace penstock
