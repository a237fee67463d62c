#include "tests/contract/raw_source.h"

#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>

#include <cerrno>
#include <cstddef>
#include <cstring>

#include "common/base/check.h"
#include "common/transfer/tcp/tcp_address.h"

namespace penstock {
namespace {

UniqueFd Dial(const TransportAddress& address) {
  if (address.kind == TransportKind::kTcp) {
    auto tcp = TcpAddress::Parse(address.address);
    CHECK(tcp.ok()) << tcp.status();
    UniqueFd fd(socket(tcp->family(), SOCK_STREAM | SOCK_CLOEXEC, 0));
    CHECK(connect(fd.get(), tcp->data(), tcp->size()) == 0);
    return fd;
  }
  sockaddr_un abstract = {};
  abstract.sun_family = AF_UNIX;
  std::memcpy(abstract.sun_path + 1, address.address.data(),
              address.address.size());
  UniqueFd fd(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  CHECK(connect(fd.get(), reinterpret_cast<sockaddr*>(&abstract),
                offsetof(sockaddr_un, sun_path) + 1 + address.address.size()) ==
        0);
  return fd;
}

}  // namespace

RawSource::RawSource(const TransportAddress& address)
    : address_(address), fd_(Dial(address)) {
  timeval limit = {60, 0};
  setsockopt(fd_.get(), SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
}

void RawSource::Send(absl::Span<const uint8_t> bytes) {
  while (!bytes.empty()) {
    ssize_t sent = send(fd_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent <= 0) return;  // closed: a read will tell
    bytes.remove_prefix(sent);
  }
}

void RawSource::SendWith(absl::Span<const uint8_t> bytes, int fd) {
  iovec piece = {const_cast<uint8_t*>(bytes.data()), bytes.size()};
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
  std::memcpy(CMSG_DATA(rights), &fd, sizeof(int));
  CHECK(sendmsg(fd_.get(), &message, MSG_NOSIGNAL) ==
        static_cast<ssize_t>(bytes.size()));
}

std::vector<uint8_t> RawSource::Read() {
  std::vector<uint8_t> frame(kShortFrameBytes);
  ssize_t got = recv(fd_.get(), frame.data(), frame.size(), MSG_WAITALL);
  CHECK(got >= 0 || errno == ECONNRESET) << std::strerror(errno);
  frame.resize(got == static_cast<ssize_t>(frame.size()) ? got : 0);
  return frame;
}

absl::Status RawSource::Greet(int memory) {
  auto challenge = DecodeChallenge(Read());
  CHECK(challenge.ok());
  Hello hello;
  hello.kind = address_.kind;
  hello.source = {"raw", Incarnation(33)};
  hello.destination = address_.incarnation;
  hello.layout = SmallLayout().id();
  HelloFrame frame =
      EncodeHello(hello, {challenge->nonce, address_.access_key}, hasher_);
  if (memory < 0) {
    Send(frame);
  } else {
    SendWith(frame, memory);
  }
  return DecodeVerdict(Read(), challenge->nonce, hello.nonce, hasher_);
}

PageHeader RawSource::Page(TransferId transfer, BlockRef block,
                           absl::Span<const uint8_t> payload) {
  PageHeader header;
  header.transfer = transfer;
  header.destination = address_.incarnation;
  header.block = block;
  header.layers = {0, SmallLayout().layers};
  header.payload_bytes = payload.size();
  header.payload_checksum = hasher_.Checksum(payload);
  header.sequence = ++sequence_;
  header.layout = SmallLayout().id();
  return header;
}

std::vector<uint8_t> RawSource::Encoded(const PageHeader& header) const {
  auto bytes = EncodePageHeader(header, hasher_);
  return {bytes.begin(), bytes.end()};
}

PageAck RawSource::Ack() {
  auto ack = DecodeAck(Read(), hasher_);
  CHECK(ack.ok()) << ack.status();
  return *ack;
}

}  // namespace penstock
