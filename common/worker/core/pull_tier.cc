#include "common/worker/core/pull_tier.h"

#include <algorithm>
#include <utility>

#include "common/base/check.h"
#include "common/base/sometimes.h"
#include "prefill_worker/core/push_routes.h"

namespace penstock {
namespace {

// One message's pages: enough to be quick, few enough to be there soon.
constexpr size_t kPagesAtOnce = 16;

// A router's belief goes stale.
constexpr absl::Duration kHintLasts = absl::Seconds(10);
constexpr size_t kMostHints = 1 << 16;

// Of a fetch, until some were measured: a message there and one back, and what
// a page takes.
constexpr absl::Duration kWait = absl::Milliseconds(2);
constexpr double kAssumedBytesASecond = 1e9;

}  // namespace

PullTier::PullTier(const WorkerContext* context) : context_(context) {}

PullTier::~PullTier() {
  for (auto& [id, pull] : pulls_) context_->timers->Cancel(pull.deadline);
}

void PullTier::Hint(const PeerAddress& source,
                    absl::Span<const BlockHash> chain) {
  const bool receives = std::any_of(
      context_->transports.begin(), context_->transports.end(),
      [](const KvTransport* each) { return each->caps().receiver_validates; });
  if (!receives || source.worker == context_->self.name || chain.empty()) {
    return;
  }
  if (hints_.size() + chain.size() > kMostHints) hints_.clear();
  const Instant until = context_->clock->Now() + kHintLasts;
  for (BlockHash hash : chain) hints_[hash] = {source.worker, until};
  if (!owners_.try_emplace(source.worker).second) return;
  context_->peers->Dial(source);
}

std::string PullTier::OwnerOf(BlockHash hash, Instant now) const {
  auto it = hints_.find(hash);
  if (it == hints_.end() || it->second.until <= now) return "";
  return owners_.contains(it->second.worker) ? it->second.worker : "";
}

const WorkerKey* PullTier::Connected(const std::string& worker) const {
  auto it = owners_.find(worker);
  if (it == owners_.end() || !it->second.has_value()) return nullptr;
  return &*it->second;
}

TierLookup PullTier::Lookup(absl::Span<const BlockHash> chain) {
  TierLookup found;
  if (chain.empty() || hints_.empty()) return found;
  const Instant now = context_->clock->Now();
  const std::string owner = OwnerOf(chain.front(), now);
  if (owner.empty()) return found;
  if (Connected(owner) == nullptr) {
    found.asking = true;
    return found;
  }
  size_t blocks = 1;
  while (blocks < chain.size() && OwnerOf(chain[blocks], now) == owner) {
    ++blocks;
  }
  found.blocks = static_cast<int>(blocks);
  found.each =
      each_ > absl::ZeroDuration()
          ? each_
          : absl::Seconds(static_cast<double>(context_->layout.block_bytes()) /
                          kAssumedBytesASecond);
  size_t under_way = 0;
  for (const auto& [id, pull] : pulls_) under_way += pull.reads.size();
  found.wait = kWait + found.each * static_cast<double>(under_way);
  return found;
}

TierTicket PullTier::Fetch(std::vector<TierRead> reads) {
  CHECK(!reads.empty());
  const TierTicket ticket = ++last_ticket_;
  const Instant now = context_->clock->Now();
  for (size_t at = 0; at < reads.size();) {
    const std::string owner = OwnerOf(reads[at].key.hash, now);
    const WorkerKey* connected = Connected(owner);
    if (connected == nullptr) {
      completions_.push_back({ticket, static_cast<int>(at++),
                              absl::NotFoundError("nobody has the page")});
      continue;
    }
    size_t end = at + 1;
    while (end < reads.size() && end - at < kPagesAtOnce &&
           OwnerOf(reads[end].key.hash, now) == owner) {
      ++end;
    }
    Ask(ticket, static_cast<int>(at), *connected,
        {reads.begin() + at, reads.begin() + end});
    at = end;
  }
  return ticket;
}

void PullTier::Ask(TierTicket ticket, int first_page, const WorkerKey& owner,
                   std::vector<TierRead> reads) {
  PullAsk ask;
  ask.transfer = {RequestId(++last_transfer_), kPullAttempt};
  ask.layout = context_->layout.id();
  ask.content = context_->content;
  ask.numerics = context_->numerics;
  std::vector<BlockRef> blocks;
  for (const TierRead& read : reads) {
    ask.pages.push_back(
        {read.key.hash, read.key.parent, read.key.tokens, read.into});
    blocks.push_back(read.into);
  }
  for (KvTransport* transport : context_->transports) {
    // What lands is to be checked page by page.
    if (!transport->caps().receiver_validates) continue;
    transport->PrepareReceive(ask.transfer, blocks);
    ask.addresses.push_back(transport->Describe());
  }
  Pull& pull = pulls_[ask.transfer];
  pull.ticket = ticket;
  pull.first_page = first_page;
  pull.owner = owner;
  pull.landed.resize(reads.size());
  pull.reads = std::move(reads);
  pull.began = context_->clock->Now();
  size_t pages = 0;
  for (const auto& [id, each] : pulls_) pages += each.reads.size();
  pull.deadline = context_->timers->Schedule(
      pull.began +
          TimeToPost(context_->options, pages * context_->layout.block_bytes()),
      [this, id = ask.transfer] {
        Pull& late = pulls_.at(id);
        late.deadline = 0;
        End(id, late, absl::UnavailableError("the pages came too late"));
      });
  context_->peers->Send(owner, std::move(ask));
}

TierStored PullTier::Store(const TierKey&, BlockRef, absl::Duration) {
  return {TierStoreVerdict::kNotWorthIt};
}

void PullTier::Cancel(TierTicket fetch) {
  for (auto& [id, pull] : pulls_) {
    if (pull.ticket == fetch) {
      End(id, pull, absl::CancelledError("the fetch was cancelled"));
    }
  }
}

void PullTier::End(TransferId transfer, Pull& pull, absl::Status status) {
  if (pull.done.has_value() || pull.end.has_value()) return;
  if (context_->peers != nullptr) {
    context_->peers->Send(pull.owner, Abort{transfer, status.code(),
                                            std::string(status.message())});
  }
  pull.end = std::move(status);
}

void PullTier::OnPeerReady(const WorkerKey& peer) {
  if (auto it = owners_.find(peer.name); it != owners_.end()) {
    it->second = peer;
  }
}

void PullTier::OnPeerLost(const WorkerKey& peer) {
  if (auto it = owners_.find(peer.name);
      it != owners_.end() && it->second == peer) {
    owners_.erase(it);
  }
  for (auto& [id, pull] : pulls_) {
    if (pull.owner != peer) continue;
    Sometimes<"a worker was lost that pages were pulled from">();
    End(id, pull, absl::UnavailableError("the pages' owner is lost"));
  }
}

void PullTier::OnDialFailed(const PeerAddress& address) {
  if (auto it = owners_.find(address.worker);
      it != owners_.end() && !it->second.has_value()) {
    owners_.erase(it);
  }
}

void PullTier::OnDone(const WorkerKey& peer, PullDone done) {
  auto it = pulls_.find(done.transfer);
  if (it == pulls_.end()) return;
  Pull& pull = it->second;
  if (pull.owner != peer || pull.done.has_value() || pull.end.has_value()) {
    return;
  }
  // What is said to be written has landed, as its owner heard, and is polled
  // before the next Poll of ours.
  pull.done = std::move(done.checksums);
}

void PullTier::OnArrival(const PageArrival& arrival) {
  auto it = pulls_.find(arrival.transfer);
  if (it == pulls_.end()) return;
  Pull& pull = it->second;
  for (size_t i = 0; i < pull.reads.size(); ++i) {
    if (pull.reads[i].into != arrival.block) continue;
    // One that was refused may have spoilt the one before it.
    const bool whole = arrival.status.ok() &&
                       arrival.layers == LayerRange{0, context_->layout.layers};
    pull.landed[i] = whole ? std::optional(arrival.checksum) : std::nullopt;
  }
}

absl::Status PullTier::Verdict(const Pull& pull, size_t read) const {
  if (pull.end.has_value()) return *pull.end;
  if (read >= pull.done->size()) {
    return absl::NotFoundError("its owner has the page no more");
  }
  if (pull.landed[read] != (*pull.done)[read]) {
    return absl::DataLossError("what landed is not what was sent");
  }
  return absl::OkStatus();
}

void PullTier::Complete(const Pull& pull) {
  for (size_t i = 0; i < pull.reads.size(); ++i) {
    absl::Status verdict = Verdict(pull, i);
    if (verdict.ok()) {
      Sometimes<"a page was pulled from another worker's pool">();
    } else {
      if (absl::IsNotFound(verdict)) {
        Sometimes<"a page that was to be pulled had gone">();
      }
      hints_.erase(pull.reads[i].key.hash);
    }
    completions_.push_back({pull.ticket, pull.first_page + static_cast<int>(i),
                            std::move(verdict)});
  }
  if (!pull.done.has_value() || pull.done->empty()) return;
  const absl::Duration each = (context_->clock->Now() - pull.began) /
                              static_cast<double>(pull.done->size());
  each_ = each_ > absl::ZeroDuration() ? each_ + (each - each_) / 8 : each;
}

void PullTier::Fence() {
  for (auto it = pulls_.begin(); it != pulls_.end();) {
    auto& [id, pull] = *it;
    const bool over = pull.done.has_value() || pull.end.has_value();
    const auto& transports = context_->transports;
    while (over && pull.fenced < transports.size() &&
           (!transports[pull.fenced]->caps().receiver_validates ||
            transports[pull.fenced]->Revoke(id))) {
      ++pull.fenced;
    }
    if (!over || pull.fenced < transports.size()) {
      ++it;
      continue;
    }
    context_->timers->Cancel(pull.deadline);
    Complete(pull);
    it = pulls_.erase(it);
  }
}

std::optional<TierCompletion> PullTier::Poll() {
  if (!pulls_.empty()) Fence();
  if (completions_.empty()) return std::nullopt;
  TierCompletion next = std::move(completions_.front());
  completions_.pop_front();
  return next;
}

}  // namespace penstock
