#include "common/transfer/progress/progress_transport.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"

namespace penstock {

namespace {

TransportOptions Checked(TransportOptions options) {
  CHECK(options.clock != nullptr);
  CHECK(options.entropy != nullptr);
  CHECK(options.self.incarnation);
  return options;
}

}  // namespace

ProgressTransport::ProgressTransport(TransportCaps caps,
                                     TransportOptions options)
    : caps_(caps),
      options_(Checked(std::move(options))),
      pages_(options_.arena, options_.layout),
      access_key_(options_.entropy()),
      bell_(options_.wake),
      receiver_(options_, &bell_) {}

TransportAddress ProgressTransport::Describe() const {
  return {caps_.kind, address_, options_.self.incarnation, access_key_};
}

absl::Status ProgressTransport::Connect(const WorkerKey& peer,
                                        const TransportAddress& address) {
  if (address.kind != caps_.kind) {
    return absl::FailedPreconditionError(absl::StrCat(
        "address of ", peer.name, " is for ", TransportName(address.kind),
        ", this transport is ", TransportName(caps_.kind)));
  }
  if (address.incarnation != peer.incarnation) {
    return absl::FailedPreconditionError(
        absl::StrCat("address of ", peer.name, " is another incarnation's"));
  }
  if (receiver_.dropped(peer)) {
    return absl::FailedPreconditionError(
        absl::StrCat("this incarnation of ", peer.name, " was dropped"));
  }
  {
    std::lock_guard lock(mutex_);
    auto known = peers_.find(peer);
    if (known != peers_.end() && known->second.address == address.address &&
        known->second.access_key == address.access_key) {
      return absl::OkStatus();
    }
    peers_[peer] = address;
  }
  Push(ConnectCommand{peer, address});
  return absl::OkStatus();
}

void ProgressTransport::PrepareReceive(TransferId transfer,
                                       const std::vector<BlockRef>& blocks) {
  receiver_.Prepare(transfer, blocks);
}

bool ProgressTransport::Revoke(TransferId transfer) {
  if (receiver_.Revoke(transfer)) return true;
  Push(FenceCommand{});
  return false;
}

PostId ProgressTransport::Post(const WorkerKey& peer, TransferId transfer,
                               std::vector<PageWrite> writes,
                               Instant deadline) {
  for (const PageWrite& write : writes) {
    CHECK(pages_.Holds(write.source, write.layers))
        << "no page: block " << write.source << ", layers ["
        << write.layers.first << ", " << write.layers.last << ")";
  }
  PostTable::Post post{0, peer, transfer, std::move(writes), deadline};
  PostId id;
  {
    std::lock_guard lock(mutex_);
    id = post.id = ++last_post_;
    commands_.push_back(std::move(post));
  }
  Poke();
  return id;
}

void ProgressTransport::Cancel(PostId post) { Push(CancelCommand{post}); }

void ProgressTransport::DropPeer(const WorkerKey& peer) {
  receiver_.Drop(peer);
  {
    std::lock_guard lock(mutex_);
    peers_.erase(peer);
  }
  Push(DropCommand{peer});
}

std::optional<PostCompletion> ProgressTransport::PollCompletion() {
  std::lock_guard lock(mutex_);
  if (completions_.empty()) return std::nullopt;
  PostCompletion completion = std::move(completions_.front());
  completions_.pop_front();
  return completion;
}

std::optional<PageArrival> ProgressTransport::PollArrival() {
  return receiver_.PollArrival();
}

std::vector<ProgressTransport::Command> ProgressTransport::TakeCommands() {
  std::lock_guard lock(mutex_);
  return std::exchange(commands_, {});
}

void ProgressTransport::Complete(std::vector<PostCompletion> completions) {
  if (completions.empty()) return;
  {
    std::lock_guard lock(mutex_);
    for (PostCompletion& completion : completions) {
      completions_.push_back(std::move(completion));
    }
  }
  bell_.Mark();
}

PageHeader ProgressTransport::MakeHeader(const PostTable::Write& write,
                                         Incarnation destination,
                                         uint64_t sequence) const {
  const PageWrite& page = write.page;
  auto payload = ReadOnly(pages_.Page(page.source, page.layers));
  PageHeader header;
  header.transfer = write.transfer;
  header.destination = destination;
  header.block = page.destination;
  header.layers = page.layers;
  for (absl::Span<const uint8_t> piece : payload) {
    header.payload_bytes += piece.size();
  }
  header.payload_checksum = options_.hasher.ChecksumPieces(payload);
  header.sequence = sequence;
  header.layout = options_.layout.id();
  if (options_.faults != nullptr) {
    header.payload_checksum = options_.faults->OnSend(header, payload);
  }
  return header;
}

void ProgressTransport::Push(Command command) {
  {
    std::lock_guard lock(mutex_);
    commands_.push_back(std::move(command));
  }
  Poke();
}

}  // namespace penstock
