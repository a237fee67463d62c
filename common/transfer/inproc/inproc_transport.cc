#include "common/transfer/inproc/inproc_transport.h"

#include <array>
#include <cstring>
#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/base/status_macros.h"

namespace penstock {
namespace {

// Two views of one page: equal layouts cut it alike.
void CopyPage(const std::vector<absl::Span<uint8_t>>& from,
              const std::vector<absl::Span<uint8_t>>& to) {
  CHECK(from.size() == to.size());
  for (size_t i = 0; i < from.size(); ++i) {
    CHECK(from[i].size() == to[i].size());
    std::memcpy(to[i].data(), from[i].data(), from[i].size());
  }
}

}  // namespace

absl::StatusOr<std::unique_ptr<InprocTransport>> InprocTransport::Create(
    Options options) {
  InprocHub* hub = options.hub != nullptr ? options.hub : &InprocHub::Process();
  std::unique_ptr<InprocTransport> transport(new InprocTransport(options, hub));
  RETURN_IF_ERROR(hub->Add(
      options.worker.self.name,
      {&transport->receiver(), &transport->bell(), transport->access_key()}));
  transport->thread_ = std::thread([t = transport.get()] { t->Run(); });
  return transport;
}

InprocTransport::InprocTransport(const Options& options, InprocHub* hub)
    : ProgressTransport({TransportKind::kInproc, /*receiver_validates=*/true,
                         /*preference=*/30},
                        options.worker),
      hub_(hub) {
  set_address(options.worker.self.name);
}

InprocTransport::~InprocTransport() {
  if (!thread_.joinable()) return;  // never got into the hub
  {
    std::lock_guard lock(mutex_);
    stop_ = true;
  }
  poked_.notify_one();
  thread_.join();
  hub_->Remove(options().self.name);
}

void InprocTransport::Poke() {
  {
    std::lock_guard lock(mutex_);
    poke_ = true;
  }
  poked_.notify_one();
}

void InprocTransport::Run() {
  bool busy = false;
  while (WaitForWork(busy)) {
    for (Command& command : TakeCommands()) Execute(std::move(command));
    posts_.Expire(options().clock->Now());
    busy = MovePages();
    Complete(posts_.TakeCompletions());
    bell().Ring();
  }
}

bool InprocTransport::WaitForWork(bool busy) {
  std::unique_lock lock(mutex_);
  if (!busy) poked_.wait(lock, [&] { return poke_ || stop_; });
  poke_ = false;
  return !stop_;
}

void InprocTransport::Execute(Command command) {
  if (auto* connect = std::get_if<ConnectCommand>(&command)) {
    posts_.Fail(connect->peer, absl::UnavailableError("address changed"));
    peers_[connect->peer] = {connect->address, 0, {}};
  } else if (auto* post = std::get_if<PostTable::Post>(&command)) {
    WorkerKey key = post->peer;
    posts_.Add(std::move(*post));
    if (!peers_.contains(key)) {
      posts_.Fail(key, absl::UnavailableError(
                           absl::StrCat("not connected to ", key.name)));
    }
  } else if (auto* cancel = std::get_if<CancelCommand>(&command)) {
    posts_.Cancel(cancel->post);
  } else if (auto* drop = std::get_if<DropCommand>(&command)) {
    posts_.Fail(drop->peer, absl::UnavailableError(
                                absl::StrCat(drop->peer.name, " was dropped")));
    peers_.erase(drop->peer);
  }
  // A FenceCommand needs nothing: a copy that has begun ends by itself.
}

bool InprocTransport::MovePages() {
  bool moved = false;
  for (auto& [key, peer] : peers_) {
    std::optional<PostTable::Write> write = posts_.Next(key);
    if (!write) continue;
    moved = true;
    uint64_t bytes = 0;
    absl::Status verdict = Move(key, peer, *write, bytes);
    if (verdict.ok() || RefusalOf(verdict)) {
      posts_.Acked(write->post, bytes, verdict);
    } else {
      posts_.Fail(key, verdict);
    }
  }
  return moved;
}

absl::Status InprocTransport::Move(const WorkerKey& key, Peer& peer,
                                   const PostTable::Write& write,
                                   uint64_t& bytes) {
  std::optional<InprocHub::Lease> lease = hub_->Use(peer.address.address);
  if (!lease) {
    return absl::UnavailableError(absl::StrCat(key.name, " is gone"));
  }
  const InprocHub::Entry& entry = **lease;
  PageReceiver& receiver = *entry.receiver;
  const WorkerKey& self = options().self;
  if (receiver.dropped(self)) {
    return absl::UnavailableError(
        absl::StrCat(key.name, " has dropped this worker"));
  }
  PageHeader sent =
      MakeHeader(write, peer.address.incarnation, ++peer.last_sent);
  posts_.SetChecksum(write, sent.payload_checksum);
  auto wire = EncodePageHeader(sent, options().hasher);
  ASSIGN_OR_RETURN(PageHeader header, ParsePageHeader(wire, receiver.hasher()));
  // A new incarnation has another key, but its own name for the failure.
  if (header.destination == receiver.self().incarnation &&
      entry.access_key != peer.address.access_key) {
    return absl::PermissionDeniedError(
        absl::StrCat("access key of ", key.name, " is wrong"));
  }
  const Instant began = receiver.Now();
  absl::Status begun = receiver.Begin(self, header, peer.channel);
  if (begun.ok()) {
    CopyPage(pages().Page(write.page.source, write.page.layers),
             receiver.Target(header));
    begun = receiver.Finish(self, header, began);
  }
  entry.bell->Ring();
  if (begun.ok()) bytes = header.payload_bytes;
  return begun;
}

}  // namespace penstock
