#include "common/transfer/socket/inbound_link.h"

#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/base/status_macros.h"

namespace penstock {
namespace {

// One turn's share of the thread.
constexpr int kReadsAtOnce = 64;
// A source that does not take its acks is not read from any more.
constexpr size_t kMaxUnsentAcks = 64 * 1024;
constexpr size_t kMaxPieces = 256;

// Takes the descriptors out of a message; keeps the first.
void CollectDescriptors(msghdr& message, UniqueFd& kept) {
  for (cmsghdr* control = CMSG_FIRSTHDR(&message); control != nullptr;
       control = CMSG_NXTHDR(&message, control)) {
    if (control->cmsg_level != SOL_SOCKET || control->cmsg_type != SCM_RIGHTS) {
      continue;
    }
    size_t count = (control->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (size_t i = 0; i < count; ++i) {
      int fd;
      std::memcpy(&fd, CMSG_DATA(control) + i * sizeof(int), sizeof(int));
      UniqueFd owned(fd);
      if (!kept) kept = std::move(owned);
    }
  }
}

}  // namespace

InboundLink::InboundLink(UniqueFd fd, const Nonce& nonce,
                         Instant handshake_deadline, const Context& context)
    : fd_(std::move(fd)),
      nonce_(nonce),
      handshake_deadline_(handshake_deadline),
      context_(context) {
  out_.Append(EncodeChallenge({nonce}));
}

InboundLink::~InboundLink() {
  if (landing_) context_.receiver->Abandon(page_, page_began_);
}

absl::Status InboundLink::Progress(bool readable) {
  for (int turn = 0; readable && turn < kReadsAtOnce; ++turn) {
    if (refused_ || out_.bytes() > kMaxUnsentAcks) break;
    ASSIGN_OR_RETURN(size_t bytes,
                     source_ ? ReadPageBytes() : ReadHelloBytes());
    if (bytes == 0) break;
    RETURN_IF_ERROR(Consume(bytes));
  }
  RETURN_IF_ERROR(out_.Flush(fd_.get()));
  if (refused_ && out_.empty()) {
    return absl::PermissionDeniedError("the source was refused");
  }
  return absl::OkStatus();
}

Poller::Interest InboundLink::interest() const {
  return {.read = !refused_ && out_.bytes() <= kMaxUnsentAcks,
          .write = !out_.empty()};
}

void InboundLink::AbandonRevoked() {
  if (!landing_ || !context_.receiver->revoking(page_.transfer)) return;
  context_.receiver->Abandon(page_, page_began_);
  landing_ = false;
  verdict_ = RefusalStatus(PageRefusal::kNotPrepared, "revoked meanwhile");
}

absl::StatusOr<size_t> InboundLink::ReadHelloBytes() {
  iovec piece = {hello_.data() + hello_bytes_, kHelloBytes - hello_bytes_};
  alignas(cmsghdr) char control[CMSG_SPACE(4 * sizeof(int))];
  msghdr message = {};
  message.msg_iov = &piece;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof(control);
  ASSIGN_OR_RETURN(size_t bytes, Receive(message));
  if (bytes > 0) CollectDescriptors(message, passed_);
  return bytes;
}

absl::StatusOr<size_t> InboundLink::ReadPageBytes() {
  std::array<iovec, kMaxPieces + 1> pieces;
  size_t count = 0;
  uint64_t covered = 0;
  if (in_page_ && landing_) {
    for (size_t i = target_; i < targets_.size() && count < kMaxPieces; ++i) {
      pieces[count++] = {targets_[i].data(), targets_[i].size()};
      covered += targets_[i].size();
    }
  } else if (in_page_) {
    covered = std::min<uint64_t>(body_left_, context_.trash.size());
    pieces[count++] = {context_.trash.data(), covered};
  }
  // The next header comes with the body's end: one call for each page.
  if (covered == body_left_) {
    pieces[count++] = {header_bytes_.data() + header_have_,
                       kPageHeaderBytes - header_have_};
  }
  msghdr message = {};
  message.msg_iov = pieces.data();
  message.msg_iovlen = count;
  return Receive(message);
}

absl::StatusOr<size_t> InboundLink::Receive(msghdr& message) {
  while (true) {
    ssize_t got = recvmsg(fd_.get(), &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    if (got > 0) return static_cast<size_t>(got);
    if (got == 0) return absl::UnavailableError("the source hung up");
    if (errno == EINTR) continue;
    if (errno == EAGAIN || errno == EWOULDBLOCK) return 0;
    return absl::UnavailableError(
        absl::StrCat("connection lost: ", std::strerror(errno)));
  }
}

absl::Status InboundLink::Consume(size_t bytes) {
  if (!source_) {
    hello_bytes_ += bytes;
    return hello_bytes_ == kHelloBytes ? FinishHello() : absl::OkStatus();
  }
  if (in_page_) {
    size_t body = std::min<uint64_t>(bytes, body_left_);
    if (landing_) ConsumeTargets(body);
    body_left_ -= body;
    bytes -= body;
    if (body_left_ > 0) return absl::OkStatus();
    RETURN_IF_ERROR(FinishPage());
  }
  header_have_ += bytes;
  if (header_have_ < kPageHeaderBytes) return absl::OkStatus();
  header_have_ = 0;
  return StartPage();
}

void InboundLink::ConsumeTargets(size_t bytes) {
  while (bytes > 0) {
    absl::Span<uint8_t>& target = targets_[target_];
    size_t part = std::min(bytes, target.size());
    target.remove_prefix(part);
    bytes -= part;
    if (target.empty()) ++target_;
  }
}

absl::Status InboundLink::FinishHello() {
  PageReceiver& receiver = *context_.receiver;
  ASSIGN_OR_RETURN(
      ReadHello read,
      DecodeHello(
          hello_,
          {context_.kind, receiver.self().incarnation, receiver.layout().id()},
          {nonce_, context_.access_key}, receiver.hasher()));
  if (read.verdict == Verdict::kWelcome &&
      receiver.dropped(read.hello.source)) {
    read.verdict = Verdict::kDropped;
  }
  if (read.verdict == Verdict::kWelcome) {
    auto reader = context_.carrier->OpenReader(std::move(passed_));
    if (reader.ok()) {
      reader_ = *std::move(reader);
      source_ = read.hello.source;
      handshake_deadline_ = Instant::Infinite();
    } else {
      read.verdict = Verdict::kUnusableMemory;
    }
  }
  refused_ = read.verdict != Verdict::kWelcome;
  out_.Append(
      EncodeVerdict(read.verdict, nonce_, read.hello.nonce, receiver.hasher()));
  return absl::OkStatus();
}

absl::Status InboundLink::StartPage() {
  PageReceiver& receiver = *context_.receiver;
  ASSIGN_OR_RETURN(page_, ParsePageHeader(header_bytes_, receiver.hasher()));
  in_page_ = true;
  page_began_ = receiver.Now();
  verdict_ = receiver.Begin(*source_, page_, channel_);
  landing_ = verdict_.ok();
  body_left_ = reader_->BodyBytes(page_);
  if (landing_) {
    page_bytes_ = receiver.Target(page_);
    targets_ = reader_->Targets(page_bytes_);
    target_ = 0;
  } else if (body_left_ > receiver.layout().block_bytes()) {
    return absl::InvalidArgumentError(
        absl::StrCat("a page of ", body_left_, " bytes"));
  }
  return body_left_ == 0 ? FinishPage() : absl::OkStatus();
}

absl::Status InboundLink::FinishPage() {
  in_page_ = false;
  if (landing_) {
    RETURN_IF_ERROR(reader_->Finish(page_, page_bytes_));
    landing_ = false;
    verdict_ = context_.receiver->Finish(*source_, page_, page_began_);
  }
  out_.Append(EncodeAck({page_.sequence, RefusalOf(verdict_)},
                        context_.receiver->hasher()));
  return absl::OkStatus();
}

}  // namespace penstock
