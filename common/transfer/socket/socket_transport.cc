#include "common/transfer/socket/socket_transport.h"

#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <string>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "common/base/log.h"
#include "common/base/status_macros.h"
#include "common/transfer/little_endian.h"

namespace penstock {
namespace {

constexpr uint64_t kListenerTag = 1;
constexpr size_t kTrashBytes = 64 * 1024;
constexpr absl::Duration kAcceptPause = absl::Milliseconds(100);

}  // namespace

absl::StatusOr<std::unique_ptr<SocketTransport>> SocketTransport::Create(
    TransportCaps caps, const TransportOptions& options, Limits limits,
    std::unique_ptr<PageCarrier> carrier) {
  if (options.self.name.size() > kMaxSourceName) {
    return absl::InvalidArgumentError(
        absl::StrCat("worker name has ", options.self.name.size(),
                     " bytes; at most ", kMaxSourceName, " are allowed"));
  }
  ASSIGN_OR_RETURN(std::unique_ptr<Poller> poller, Poller::Create());
  ASSIGN_OR_RETURN(PageCarrier::Listening listening, carrier->Listen());
  RETURN_IF_ERROR(
      poller->Add(listening.fd.get(), kListenerTag, {.read = true}));
  std::unique_ptr<SocketTransport> transport(
      new SocketTransport(caps, options, limits, std::move(carrier),
                          std::move(poller), std::move(listening.fd)));
  transport->set_address(std::move(listening.address));
  transport->thread_ = std::thread([t = transport.get()] { t->Run(); });
  return transport;
}

SocketTransport::SocketTransport(TransportCaps caps,
                                 const TransportOptions& transport_options,
                                 Limits limits,
                                 std::unique_ptr<PageCarrier> carrier,
                                 std::unique_ptr<Poller> poller,
                                 UniqueFd listener)
    : ProgressTransport(caps, transport_options),
      limits_(limits),
      carrier_(std::move(carrier)),
      poller_(std::move(poller)),
      listener_(std::move(listener)),
      trash_(kTrashBytes),
      inbound_context_{caps.kind, access_key(), &receiver(), carrier_.get(),
                       absl::MakeSpan(trash_)},
      outbound_context_{caps.kind,
                        &options(),
                        &pages(),
                        carrier_.get(),
                        &posts_,
                        [this](const PostTable::Write& write,
                               Incarnation destination, uint64_t sequence) {
                          return MakeHeader(write, destination, sequence);
                        }},
      last_tag_(kListenerTag) {}

SocketTransport::~SocketTransport() {
  stop_.store(true);
  Poke();
  if (thread_.joinable()) thread_.join();
}

void SocketTransport::Run() {
  while (!stop_.load()) {
    absl::Span<const Poller::Event> events = poller_->Wait(UntilNextDeadline());
    for (Command& command : TakeCommands()) Execute(std::move(command));
    for (const Poller::Event& event : events) Dispatch(event);
    Expire(options().clock->Now());
    SendWrites();
    Complete(posts_.TakeCompletions());
    bell().Ring();
  }
}

absl::Duration SocketTransport::UntilNextDeadline() const {
  Instant next = std::min(posts_.NextDeadline(), accept_again_);
  for (const auto& [tag, link] : inbound_) {
    next = std::min(next, link->handshake_deadline());
  }
  for (const auto& [key, peer] : peers_) {
    if (peer.link) next = std::min(next, peer.link->handshake_deadline());
  }
  if (next == Instant::Infinite()) return absl::InfiniteDuration();
  return next - options().clock->Now();
}

void SocketTransport::Execute(Command command) {
  if (auto* connect = std::get_if<ConnectCommand>(&command)) {
    Forget(connect->peer);
    Peer& peer = peers_[connect->peer];
    peer.address = connect->address;
    Dial(connect->peer, peer);
  } else if (auto* post = std::get_if<PostTable::Post>(&command)) {
    WorkerKey key = post->peer;
    posts_.Add(std::move(*post));
    auto peer = peers_.find(key);
    if (peer == peers_.end()) {
      posts_.Fail(key, absl::UnavailableError(
                           absl::StrCat("not connected to ", key.name)));
    } else if (!peer->second.link) {
      Dial(key, peer->second);
    }
  } else if (auto* cancel = std::get_if<CancelCommand>(&command)) {
    posts_.Cancel(cancel->post);
  } else if (auto* drop = std::get_if<DropCommand>(&command)) {
    Forget(drop->peer);
    CloseInboundOf(drop->peer);
  } else {
    for (auto& [tag, link] : inbound_) link->AbandonRevoked();
  }
}

void SocketTransport::Dispatch(const Poller::Event& event) {
  if (event.tag == kListenerTag) return AcceptAll();
  if (inbound_.contains(event.tag)) {
    return ProgressInbound(event.tag, event.readable);
  }
  auto outbound = outbound_tags_.find(event.tag);
  // Else: closed by an earlier event or command of this turn.
  if (outbound != outbound_tags_.end()) {
    ProgressOutbound(WorkerKey(outbound->second), event.readable);
  }
}

void SocketTransport::Expire(Instant now) {
  for (const WorkerKey& key : posts_.Expire(now)) {
    auto peer = peers_.find(key);
    if (peer == peers_.end() || !peer->second.link) continue;
    if (peer->second.link->silent_since() + limits_.silence > now) {
      peer->second.link->Detach();
    } else {
      CloseOutbound(
          key, peer->second,
          absl::UnavailableError(absl::StrCat(key.name, " has fallen silent")));
    }
  }
  for (auto at = inbound_.begin(); at != inbound_.end();) {
    auto current = at++;
    if (current->second->handshake_deadline() > now) continue;
    CloseInbound(current->first,
                 absl::DeadlineExceededError("no hello in time"));
  }
  for (auto& [key, peer] : peers_) {
    if (!peer.link || peer.link->handshake_deadline() > now) continue;
    CloseOutbound(key, peer,
                  absl::UnavailableError(absl::StrCat(
                      key.name, " did not answer in the handshake")));
  }
  if (accept_again_ <= now) {
    accept_again_ = Instant::Infinite();
    poller_->Change(listener_.get(), kListenerTag, {.read = true});
  }
}

void SocketTransport::SendWrites() {
  std::vector<WorkerKey> waiting;
  for (const auto& [key, peer] : peers_) {
    if (peer.link && posts_.waiting(key)) waiting.push_back(key);
  }
  for (const WorkerKey& key : waiting) ProgressOutbound(key, false);
}

void SocketTransport::AcceptAll() {
  while (true) {
    UniqueFd fd(accept4(listener_.get(), nullptr, nullptr,
                        SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (fd) {
      Accept(std::move(fd));
      continue;
    }
    if (errno == EINTR || errno == ECONNABORTED) continue;
    if (errno == EAGAIN || errno == EWOULDBLOCK) return;
    // Out of descriptors or memory: the listener would stay readable.
    accept_again_ = options().clock->Now() + kAcceptPause;
    poller_->Change(listener_.get(), kListenerTag, {});
    return;
  }
}

void SocketTransport::Accept(UniqueFd fd) {
  if (inbound_.size() >= limits_.inbound_links) return;
  carrier_->Adopt(fd.get());
  uint64_t tag = ++last_tag_;
  int raw = fd.get();
  auto link = std::make_unique<InboundLink>(
      std::move(fd), DrawNonce(), options().clock->Now() + limits_.handshake,
      inbound_context_);
  if (!poller_->Add(raw, tag, link->interest()).ok()) return;
  inbound_.emplace(tag, std::move(link));
  ProgressInbound(tag, false);
}

void SocketTransport::ProgressInbound(uint64_t tag, bool readable) {
  InboundLink& link = *inbound_.at(tag);
  absl::Status status = link.Progress(readable);
  if (!status.ok()) return CloseInbound(tag, status);
  poller_->Change(link.fd(), tag, link.interest());
}

void SocketTransport::CloseInbound(uint64_t tag, const absl::Status& why) {
  auto at = inbound_.find(tag);
  if (why.code() != absl::StatusCode::kUnavailable) {
    const std::optional<WorkerKey>& source = at->second->source();
    Log(LogLevel::kWarning, "data connection closed",
        {{"transport", TransportName(caps().kind)},
         {"source", source ? source->name : "unknown"},
         {"why", std::string(why.message())}});
  }
  poller_->Remove(at->second->fd());
  inbound_.erase(at);
}

void SocketTransport::CloseInboundOf(const WorkerKey& source) {
  for (auto at = inbound_.begin(); at != inbound_.end();) {
    auto current = at++;
    if (current->second->source() != source) continue;
    CloseInbound(current->first, absl::UnavailableError("dropped"));
  }
}

void SocketTransport::Dial(const WorkerKey& key, Peer& peer) {
  absl::StatusOr<UniqueFd> fd = carrier_->Dial(peer.address.address);
  if (!fd.ok()) return posts_.Fail(key, fd.status());
  carrier_->Adopt(fd->get());
  peer.tag = ++last_tag_;
  int raw = fd->get();
  auto link = std::make_unique<OutboundLink>(
      *std::move(fd), OutboundLink::Target{key, peer.address}, DrawNonce(),
      options().clock->Now() + limits_.handshake, outbound_context_);
  absl::Status added = poller_->Add(raw, peer.tag, link->interest());
  if (!added.ok()) return posts_.Fail(key, added);
  outbound_tags_.emplace(peer.tag, key);
  peer.link = std::move(link);
}

void SocketTransport::ProgressOutbound(const WorkerKey& key, bool readable) {
  Peer& peer = peers_.at(key);
  absl::Status status = peer.link->Progress(readable);
  if (!status.ok()) return CloseOutbound(key, peer, status);
  poller_->Change(peer.link->fd(), peer.tag, peer.link->interest());
}

void SocketTransport::CloseOutbound(const WorkerKey& key, Peer& peer,
                                    const absl::Status& status) {
  if (peer.link) {
    poller_->Remove(peer.link->fd());
    outbound_tags_.erase(peer.tag);
    peer.link.reset();
  }
  posts_.Fail(key, status);
}

void SocketTransport::Forget(const WorkerKey& key) {
  auto peer = peers_.find(key);
  if (peer == peers_.end()) return;
  CloseOutbound(key, peer->second,
                absl::UnavailableError(
                    absl::StrCat(key.name, " was dropped or has moved")));
  peers_.erase(peer);
}

Nonce SocketTransport::DrawNonce() const {
  Nonce nonce;
  StoreLittleEndian<uint64_t>(options().entropy(), &nonce[0]);
  StoreLittleEndian<uint64_t>(options().entropy(), &nonce[8]);
  return nonce;
}

}  // namespace penstock
