#include "common/transfer/socket/out_queue.h"

#include <sys/socket.h>
#include <sys/uio.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "absl/strings/str_cat.h"

namespace penstock {
namespace {

constexpr size_t kMergeBelow = 4096;
constexpr size_t kPiecesAtOnce = 64;

}  // namespace

void OutQueue::Append(absl::Span<const uint8_t> bytes) {
  if (bytes.empty()) return;
  bytes_ += bytes.size();
  if (!chunks_.empty() && chunks_.back().borrowed.empty() &&
      chunks_.back().owned.size() < kMergeBelow) {
    std::vector<uint8_t>& last = chunks_.back().owned;
    last.insert(last.end(), bytes.begin(), bytes.end());
    return;
  }
  chunks_.push_back({{bytes.begin(), bytes.end()}, {}, 0});
}

void OutQueue::Borrow(absl::Span<const uint8_t> bytes) {
  if (bytes.empty()) return;
  bytes_ += bytes.size();
  chunks_.push_back({{}, bytes, 0});
}

void OutQueue::Detach() {
  for (Chunk& chunk : chunks_) {
    if (chunk.borrowed.empty()) continue;
    absl::Span<const uint8_t> rest = chunk.rest();
    chunk = {{rest.begin(), rest.end()}, {}, 0};
  }
}

absl::Status OutQueue::Flush(int fd) {
  while (!chunks_.empty()) {
    std::array<iovec, kPiecesAtOnce> pieces;
    size_t count = 0;
    for (const Chunk& chunk : chunks_) {
      if (count == pieces.size()) break;
      absl::Span<const uint8_t> rest = chunk.rest();
      pieces[count++] = {const_cast<uint8_t*>(rest.data()), rest.size()};
    }
    msghdr message = {};
    message.msg_iov = pieces.data();
    message.msg_iovlen = count;
    ssize_t sent = sendmsg(fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent < 0) {
      if (errno == EINTR) continue;
      if (errno == EAGAIN || errno == EWOULDBLOCK) return absl::OkStatus();
      return absl::UnavailableError(
          absl::StrCat("connection lost: ", std::strerror(errno)));
    }
    Sent(sent);
  }
  return absl::OkStatus();
}

void OutQueue::Sent(size_t bytes) {
  bytes_ -= bytes;
  while (bytes > 0) {
    Chunk& front = chunks_.front();
    size_t rest = front.rest().size();
    if (bytes < rest) {
      front.done += bytes;
      return;
    }
    bytes -= rest;
    chunks_.pop_front();
  }
}

}  // namespace penstock
