#include "common/transfer/testing/faulty_transport.h"

#include <utility>

#include "common/base/check.h"

namespace penstock {

FaultyTransport::FaultyTransport(std::unique_ptr<KvTransport> inner,
                                 const Clock* clock)
    : inner_(std::move(inner)), clock_(clock) {}

FaultyTransport::~FaultyTransport() = default;

void FaultyTransport::Script(std::vector<Fault> faults) {
  script_.insert(script_.end(), faults.begin(), faults.end());
}

void FaultyTransport::Release(PostId post) {
  auto at = pending_.find(post);
  CHECK(at != pending_.end() && !at->second.dropped)
      << "post " << post << " is not held";
  Forward(at->second,
          at->second.completed ? std::nullopt : std::make_optional(post));
  pending_.erase(at);
}

std::vector<PostId> FaultyTransport::held() const {
  std::vector<PostId> ids;
  for (const auto& [id, pending] : pending_) {
    if (!pending.dropped) ids.push_back(id);
  }
  return ids;
}

absl::Status FaultyTransport::Connect(const WorkerKey& peer,
                                      const TransportAddress& address) {
  return inner_->Connect(peer, address);
}

void FaultyTransport::PrepareReceive(TransferId transfer,
                                     const std::vector<BlockRef>& blocks) {
  inner_->PrepareReceive(transfer, blocks);
}

bool FaultyTransport::Revoke(TransferId transfer) {
  return inner_->Revoke(transfer);
}

PostId FaultyTransport::Post(const WorkerKey& peer, TransferId transfer,
                             std::vector<PageWrite> writes, Instant deadline) {
  Fault fault = Fault::kNone;
  if (!script_.empty()) {
    fault = script_.front();
    script_.pop_front();
  }
  PostId id = ++last_post_;
  Pending pending{peer, transfer, std::move(writes), deadline};
  switch (fault) {
    case Fault::kDuplicate:
      Forward(pending, id);
      Forward(pending, std::nullopt);
      break;
    case Fault::kNone:
      Forward(pending, id);
      break;
    case Fault::kDrop:
    case Fault::kHold:
      pending.dropped = fault == Fault::kDrop;
      pending_.emplace(id, std::move(pending));
      break;
  }
  return id;
}

void FaultyTransport::Cancel(PostId post) {
  if (auto at = pending_.find(post); at != pending_.end()) {
    CompletePending(post, at->second, absl::CancelledError("cancelled"));
    return;
  }
  for (const auto& [inner, outer] : forwarded_) {
    if (outer == post) inner_->Cancel(inner);
  }
}

void FaultyTransport::DropPeer(const WorkerKey& peer) {
  for (auto& [id, pending] : pending_) {
    if (pending.peer != peer) continue;
    CompletePending(id, pending, absl::UnavailableError("peer dropped"));
  }
  inner_->DropPeer(peer);
}

std::optional<PostCompletion> FaultyTransport::PollCompletion() {
  for (auto& [id, pending] : pending_) {
    if (pending.deadline > clock_->Now()) continue;
    CompletePending(id, pending, absl::DeadlineExceededError("never left"));
  }
  while (completions_.empty()) {
    std::optional<PostCompletion> done = inner_->PollCompletion();
    if (!done) return std::nullopt;
    auto at = forwarded_.find(done->post);
    CHECK(at != forwarded_.end()) << "an unknown post completed";
    std::optional<PostId> id = at->second;
    forwarded_.erase(at);
    if (!id) continue;
    done->post = *id;
    completions_.push_back(*std::move(done));
  }
  PostCompletion first = std::move(completions_.front());
  completions_.pop_front();
  return first;
}

std::optional<PageArrival> FaultyTransport::PollArrival() {
  return inner_->PollArrival();
}

void FaultyTransport::Forward(const Pending& pending,
                              std::optional<PostId> as) {
  PostId inner = inner_->Post(pending.peer, pending.transfer, pending.writes,
                              pending.deadline);
  forwarded_.emplace(inner, as);
}

void FaultyTransport::CompletePending(PostId id, Pending& pending,
                                      absl::Status status) {
  if (pending.completed) return;
  pending.completed = true;
  completions_.push_back({id, pending.transfer, std::move(status), 0,
                          std::vector<uint64_t>(pending.writes.size())});
}

}  // namespace penstock
