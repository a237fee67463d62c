#include "common/transfer/socket/outbound_link.h"

#include <sys/socket.h>
#include <sys/uio.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/base/status_macros.h"

namespace penstock {
namespace {

// Queued ahead of the socket: enough to keep it busy, little to copy when a
// deadline makes the link let go of the arena.
constexpr size_t kAheadBytes = 256 * 1024;
constexpr size_t kAheadChunks = 64;

}  // namespace

OutboundLink::OutboundLink(UniqueFd fd, Target target, const Nonce& nonce,
                           Instant handshake_deadline, const Context& context)
    : fd_(std::move(fd)),
      target_(std::move(target)),
      nonce_(nonce),
      handshake_deadline_(handshake_deadline),
      context_(context) {}

Poller::Interest OutboundLink::interest() const {
  return {.read = true, .write = state_ == State::kConnecting || !out_.empty()};
}

absl::Status OutboundLink::Progress(bool readable) {
  if (state_ == State::kConnecting) RETURN_IF_ERROR(FinishConnecting());
  if (readable) RETURN_IF_ERROR(Read());
  while (true) {
    QueueWrites();
    if (out_.empty()) return absl::OkStatus();
    RETURN_IF_ERROR(out_.Flush(fd_.get()));
    if (!out_.empty()) return absl::OkStatus();
  }
}

absl::Status OutboundLink::FinishConnecting() {
  int error = 0;
  socklen_t size = sizeof(error);
  if (getsockopt(fd_.get(), SOL_SOCKET, SO_ERROR, &error, &size) != 0) {
    error = errno;
  }
  sockaddr_storage peer;
  socklen_t peer_size = sizeof(peer);
  if (error == 0 && getpeername(fd_.get(), reinterpret_cast<sockaddr*>(&peer),
                                &peer_size) == 0) {
    state_ = State::kChallenge;
    return absl::OkStatus();
  }
  if (error == 0) return absl::OkStatus();  // still in progress
  return absl::UnavailableError(absl::StrCat(
      "cannot connect to ", target_.peer.name, ": ", std::strerror(error)));
}

absl::Status OutboundLink::Read() {
  if (state_ == State::kConnecting) return absl::OkStatus();
  while (true) {
    ssize_t got = recv(fd_.get(), in_.data() + in_bytes_,
                       in_.size() - in_bytes_, MSG_DONTWAIT);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
      return absl::OkStatus();
    }
    if (got <= 0) {
      return absl::UnavailableError(absl::StrCat(
          target_.peer.name, state_ == State::kReady
                                 ? " closed the connection"
                                 : " closed the connection in the handshake"));
    }
    in_bytes_ += got;
    size_t at = 0;
    for (; at + kShortFrameBytes <= in_bytes_; at += kShortFrameBytes) {
      absl::Status status =
          OnFrame(absl::MakeConstSpan(in_).subspan(at, kShortFrameBytes));
      if (absl::IsInvalidArgument(status)) {
        return absl::UnavailableError(absl::StrCat(
            target_.peer.name, " makes no sense: ", status.message()));
      }
      RETURN_IF_ERROR(status);
    }
    in_bytes_ -= at;
    std::memmove(in_.data(), in_.data() + at, in_bytes_);
  }
}

absl::Status OutboundLink::OnFrame(absl::Span<const uint8_t> frame) {
  const BlockHasher& hasher = context_.options->hasher;
  switch (state_) {
    case State::kChallenge: {
      ASSIGN_OR_RETURN(Challenge challenge, DecodeChallenge(frame));
      return SendHello(challenge);
    }
    case State::kVerdict:
      RETURN_IF_ERROR(DecodeVerdict(frame, challenge_, nonce_, hasher));
      state_ = State::kReady;
      handshake_deadline_ = Instant::Infinite();
      return absl::OkStatus();
    case State::kReady: {
      ASSIGN_OR_RETURN(PageAck ack, DecodeAck(frame, hasher));
      return OnAck(ack);
    }
    case State::kConnecting:
      break;
  }
  CHECK(false) << "a frame before the connection";
  return absl::OkStatus();
}

absl::Status OutboundLink::SendHello(const Challenge& challenge) {
  const TransportOptions& options = *context_.options;
  challenge_ = challenge.nonce;
  Hello hello{context_.kind, options.self, target_.address.incarnation,
              options.layout.id(), nonce_};
  HelloFrame frame = EncodeHello(
      hello, {challenge_, target_.address.access_key}, options.hasher);
  state_ = State::kVerdict;
  int passed = context_.carrier->passed_fd();
  if (passed < 0) {
    out_.Append(frame);
    return absl::OkStatus();
  }
  iovec piece = {frame.data(), frame.size()};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  msghdr message = {};
  message.msg_iov = &piece;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof(control);
  cmsghdr* rights = CMSG_FIRSTHDR(&message);
  rights->cmsg_level = SOL_SOCKET;
  rights->cmsg_type = SCM_RIGHTS;
  rights->cmsg_len = CMSG_LEN(sizeof(int));
  std::memcpy(CMSG_DATA(rights), &passed, sizeof(int));
  // Nothing was sent before on this connection: there is room.
  ssize_t sent = sendmsg(fd_.get(), &message, MSG_NOSIGNAL | MSG_DONTWAIT);
  if (sent < 0) {
    return absl::UnavailableError(absl::StrCat("cannot pass memory to ",
                                               target_.peer.name, ": ",
                                               std::strerror(errno)));
  }
  out_.Append(absl::MakeConstSpan(frame).subspan(sent));
  return absl::OkStatus();
}

absl::Status OutboundLink::OnAck(const PageAck& ack) {
  if (in_flight_.empty() || in_flight_.front().sequence != ack.sequence) {
    return absl::UnavailableError(
        absl::StrCat(target_.peer.name, " acknowledges what was not sent"));
  }
  heard_ = context_.options->clock->Now();
  InFlight page = in_flight_.front();
  in_flight_.pop_front();
  absl::Status verdict;
  if (ack.refusal) verdict = RefusalStatus(*ack.refusal, target_.peer.name);
  context_.posts->Acked(page.post, page.bytes, verdict);
  return absl::OkStatus();
}

void OutboundLink::QueueWrites() {
  if (state_ != State::kReady) return;
  while (out_.bytes() < kAheadBytes && out_.chunks() < kAheadChunks) {
    std::optional<PostTable::Write> write = context_.posts->Next(target_.peer);
    if (!write) return;
    PageHeader header = context_.make_header(
        *write, target_.address.incarnation, ++last_sequence_);
    context_.posts->SetChecksum(*write, header.payload_checksum);
    out_.Append(EncodePageHeader(header, context_.options->hasher));
    context_.carrier->AppendBody(write->page, *context_.pages, out_);
    if (in_flight_.empty()) heard_ = context_.options->clock->Now();
    in_flight_.push_back({header.sequence, write->post, header.payload_bytes});
  }
}

}  // namespace penstock
