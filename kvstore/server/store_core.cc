#include "kvstore/server/store_core.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/base/log.h"
#include "common/base/status_macros.h"

namespace penstock {
namespace {

constexpr size_t kMostWaiting = 1024;
// Pages on their way to workers.
constexpr size_t kMostPosts = 1 << 16;

}  // namespace

StoreCore::StoreCore(Options options, Ports ports)
    : options_(std::move(options)),
      ports_(std::move(ports)),
      pool_(ports_.pages.blocks()) {
  CHECK(!ports_.transports.empty() && ports_.clock != nullptr);
}

absl::StatusOr<StoreCore::SessionId> StoreCore::Open(const StoreHello& hello,
                                                     Reply reply) {
  const TierIdentity theirs{hello.layout.id(), hello.content, hello.numerics};
  if (!(theirs == options_.identity)) {
    return absl::FailedPreconditionError(absl::StrCat(
        "this store keeps pages of model ", options_.identity.content.value(),
        ", layout ", options_.identity.layout.value(), ", numerics ",
        options_.identity.numerics.value(), "; ", hello.worker.name, " has ",
        theirs.content.value(), ", ", theirs.layout.value(), ", ",
        theirs.numerics.value(), ": run a store for each"));
  }
  // An earlier stream of that worker is dead, whether it knows or not.
  for (const auto& [id, session] : sessions_) {
    if (session.hello.worker.name != hello.worker.name) continue;
    const WorkerKey old = session.hello.worker;
    Close(id);
    // What it had sent when it died is not to be taken for the new one's.
    if (old != hello.worker) {
      for (KvTransport* transport : ports_.transports) transport->DropPeer(old);
    }
    break;
  }
  const SessionId id = ++last_session_;
  sessions_[id] = {hello, std::move(reply)};
  StoreWelcome welcome{options_.self, {}};
  for (KvTransport* transport : ports_.transports) {
    welcome.addresses.push_back(transport->Describe());
  }
  Tell(id, std::move(welcome));
  return id;
}

void StoreCore::Close(SessionId session) {
  auto it = sessions_.find(session);
  if (it == sessions_.end()) return;
  sessions_.erase(it);
  for (auto& [transfer, grant] : grants_) {
    if (grant.session == session) grant.closing = true;
  }
  EndGrants(ports_.clock->Now());
}

void StoreCore::Tell(SessionId session, StoreReply reply) {
  auto it = sessions_.find(session);
  if (it != sessions_.end()) it->second.reply(std::move(reply));
}

void StoreCore::TellGot(SessionId session, uint64_t id, absl::StatusCode code) {
  StoreGot got;
  got.id = id;
  got.code = code;
  Tell(session, std::move(got));
}

absl::Status StoreCore::OnRequest(SessionId session,
                                  const StoreRequest& request) {
  CHECK(sessions_.contains(session));
  // What a worker was told has arrived is there for its next request.
  while (Tick()) {
  }
  return std::visit([&](const auto& each) { return On(session, each); },
                    request);
}

bool StoreCore::HeldBelow(BlockHash hash) {
  return ports_.below != nullptr &&
         ports_.below->Lookup(absl::MakeConstSpan(&hash, 1)).blocks == 1;
}

absl::Status StoreCore::On(SessionId, const StoreHello&) {
  return absl::InvalidArgumentError("a second hello");
}

absl::Status StoreCore::On(SessionId session, const StoreLookup& lookup) {
  StoreFound found{lookup.id, 0};
  for (BlockHash hash : lookup.chain) {
    if (!pages_.contains(hash) && FindSaving(hash) == nullptr &&
        !HeldBelow(hash)) {
      break;
    }
    policy_.Use(hash);
    ++found.blocks;
  }
  Tell(session, found);
  return absl::OkStatus();
}

absl::Status StoreCore::On(SessionId session, const StoreGet& get) {
  ++stats_.gets;
  if (posts_.size() >= kMostPosts) {
    TellGot(session, get.id, absl::StatusCode::kUnavailable);
    return absl::OkStatus();
  }
  const BlockHash hash = get.key.hash;
  bool other = false;
  if (auto it = pages_.find(hash); it != pages_.end()) {
    policy_.Use(hash);
    if (it->second.key == get.key) {
      ++stats_.hits;
      Send({session, get, pool_.Pin(it->second.hold.ref()), it->second.checksum,
            it->second.key});
      return absl::OkStatus();
    }
    // Forgotten here and below, so that the other block may come.
    ++stats_.bad_pages;
    Drop(hash);
    other = true;
  }
  if (const Saving* saving = FindSaving(hash);
      saving != nullptr && saving->key == get.key) {
    ++stats_.hits;
    Send({session, get, pool_.Pin(saving->hold.ref()), saving->checksum,
          saving->key});
    return absl::OkStatus();
  }
  for (auto& [ticket, loading] : loading_) {
    if (loading.key == get.key) {
      loading.askers.push_back({session, get});
      return absl::OkStatus();
    }
  }
  if (!HeldBelow(hash)) {
    TellGot(session, get.id,
            other ? absl::StatusCode::kDataLoss : absl::StatusCode::kNotFound);
    return absl::OkStatus();
  }
  if (!BeginOrWait({session, get})) {
    TellGot(session, get.id, absl::StatusCode::kUnavailable);
  }
  return absl::OkStatus();
}

bool StoreCore::Begin(SessionId session, const StoreGet& get) {
  BlockHold block = TakeBlock();
  if (!block) return false;
  TransferPin pin = pool_.Pin(block.ref());
  const TierTicket ticket = ports_.below->Fetch({{get.key, block.ref()}});
  loading_[ticket] = {
      get.key, std::move(block), std::move(pin), {{session, get}}};
  return true;
}

absl::Status StoreCore::On(SessionId session, const StorePut& put) {
  if (ports_.hasher.Next(put.key.parent, put.key.tokens) != put.key.hash) {
    return absl::InvalidArgumentError("a page's hash is not of its tokens");
  }
  StoreGranted granted;
  granted.id = put.id;
  if (pages_.contains(put.key.hash)) {
    policy_.Use(put.key.hash);
    granted.verdict = TierStoreVerdict::kHeld;
    Tell(session, granted);
    return absl::OkStatus();
  }
  const bool many = sessions_[session].grants >= options_.most_grants;
  if (draining_ || many || !BeginOrWait({session, put})) {
    granted.verdict = TierStoreVerdict::kBusy;
    Tell(session, granted);
  }
  return absl::OkStatus();
}

bool StoreCore::Begin(SessionId session, const StorePut& put) {
  BlockHold block = TakeBlock();
  if (!block) return false;
  ++sessions_[session].grants;
  StoreGranted granted;
  granted.id = put.id;
  granted.verdict = TierStoreVerdict::kTaken;
  granted.transfer = {RequestId(++last_transfer_), AttemptId(1)};
  granted.block = block.ref();
  Granted& grant = grants_[granted.transfer];
  grant.session = session;
  grant.put = put.id;
  grant.key = put.key;
  grant.recompute = put.recompute;
  grant.pin = pool_.Pin(block.ref());
  grant.hold = std::move(block);
  grant.deadline = ports_.clock->Now() + options_.limit;
  for (KvTransport* transport : ports_.transports) {
    transport->PrepareReceive(granted.transfer, {granted.block});
  }
  Tell(session, granted);
  return true;
}

bool StoreCore::BeginOrWait(Waiting waiting) {
  const bool begun =
      waiting_.empty() &&
      std::visit([&](const auto& what) { return Begin(waiting.session, what); },
                 waiting.what);
  if (begun) return true;
  if (waiting_.size() >= kMostWaiting) return false;
  waiting_.push_back(std::move(waiting));
  return true;
}

void StoreCore::BeginWaiting() {
  while (!waiting_.empty()) {
    const Waiting& next = waiting_.front();
    if (sessions_.contains(next.session) &&
        !std::visit([&](const auto& what) { return Begin(next.session, what); },
                    next.what)) {
      return;
    }
    waiting_.pop_front();
  }
}

absl::Status StoreCore::On(SessionId session, const StoreGiveUp& give_up) {
  std::erase_if(waiting_, [&](const Waiting& waiting) {
    const auto* put = std::get_if<StorePut>(&waiting.what);
    return waiting.session == session && put != nullptr &&
           put->id == give_up.put;
  });
  for (auto& [transfer, grant] : grants_) {
    if (grant.session == session && grant.put == give_up.put) {
      grant.closing = true;
    }
  }
  EndGrants(ports_.clock->Now());
  return absl::OkStatus();
}

BlockHold StoreCore::TakeBlock() {
  std::erase_if(freeing_,
                [this](BlockRef block) { return !pool_.IsLive(block); });
  while (pool_.free() == 0 && freeing_.empty()) {
    const std::optional<BlockHash> victim = policy_.Evict();
    if (!victim.has_value()) return {};
    auto it = pages_.find(*victim);
    const BlockRef block = it->second.hold.ref();
    pages_.erase(it);
    ++stats_.evicted;
    if (pool_.IsLive(block)) freeing_.insert(block);
  }
  auto taken = pool_.TryAllocate(1);
  return taken.has_value() ? std::move(taken->front()) : BlockHold();
}

void StoreCore::Admit(Page page) {
  const BlockHash hash = page.key.hash;
  const uint64_t bytes = ports_.pages.layout().block_bytes();
  policy_.Add(
      hash, page.key.parent,
      {absl::ToDoubleSeconds(page.recompute),
       static_cast<double>(bytes) / options_.fetch_bytes_a_second, bytes});
  pages_[hash] = std::move(page);
}

void StoreCore::Drop(BlockHash hash) {
  policy_.Remove(hash);
  pages_.erase(hash);
}

bool StoreCore::Tick() {
  bool more = false;
  for (size_t i = 0; i < ports_.transports.size(); ++i) {
    while (auto arrival = ports_.transports[i]->PollArrival()) {
      OnArrival(*arrival);
      more = true;
    }
    while (auto posted = ports_.transports[i]->PollCompletion()) {
      OnPosted(i, *posted);
      more = true;
    }
  }
  if (ports_.below != nullptr) {
    while (auto ended = ports_.below->Poll()) {
      OnBelow(*ended);
      more = true;
    }
  }
  EndGrants(ports_.clock->Now());
  BeginWaiting();
  return more;
}

StoreCore::Stats StoreCore::stats() const {
  Stats stats = stats_;
  stats.pages = pages_.size();
  stats.blocks = pool_.total();
  return stats;
}

}  // namespace penstock
