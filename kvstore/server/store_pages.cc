// The part of StoreCore that moves pages: in from workers, out to them, down to
// the tier below and up from it.

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/log.h"
#include "kvstore/server/store_core.h"

namespace penstock {
namespace {

// Pages that wait to be written below hold their blocks.
constexpr size_t kMostUnsaved = 64;

}  // namespace

void StoreCore::OnArrival(const PageArrival& arrival) {
  auto it = grants_.find(arrival.transfer);
  if (it == grants_.end()) return;
  Granted& grant = it->second;
  if (!arrival.status.ok()) {
    // The worker hears it too, and tries again or gives up.
    ++stats_.bad_pages;
    return;
  }
  if (!(arrival.layers == LayerRange{0, ports_.pages.layout().layers})) return;
  grant.checksum = arrival.checksum;
  grant.closing = true;
}

void StoreCore::EndGrants(Instant now) {
  for (auto it = grants_.begin(); it != grants_.end();) {
    Granted& grant = it->second;
    if (grant.deadline <= now) grant.closing = true;
    if (grant.closing) {
      while (grant.fenced < ports_.transports.size() &&
             ports_.transports[grant.fenced]->Revoke(it->first)) {
        ++grant.fenced;
      }
    }
    if (grant.fenced < ports_.transports.size()) {
      ++it;
      continue;
    }
    auto ended = std::move(grants_.extract(it++).mapped());
    if (auto session = sessions_.find(ended.session);
        session != sessions_.end()) {
      --session->second.grants;
    }
    // Nothing more lands in it: the block is the page's.
    if (!ended.checksum.has_value() || pages_.contains(ended.key.hash)) {
      continue;
    }
    ++stats_.puts;
    Save({ended.key, *ended.checksum, ended.recompute, ended.hold.Share(), {}});
    Admit({ended.key, *ended.checksum, std::move(ended.hold), ended.recompute});
  }
}

void StoreCore::Save(Saving saving) {
  if (ports_.below == nullptr) return;
  const TierStored stored =
      ports_.below->Store(saving.key, saving.hold.ref(), saving.recompute);
  if (stored.verdict == TierStoreVerdict::kTaken) {
    saving.pin = pool_.Pin(saving.hold.ref());
    writing_[stored.ticket] = std::move(saving);
  } else if (stored.verdict == TierStoreVerdict::kBusy &&
             unsaved_.size() < kMostUnsaved) {
    unsaved_.push_back(std::move(saving));
  }
}

const StoreCore::Saving* StoreCore::FindSaving(BlockHash hash) const {
  for (const auto& [ticket, saving] : writing_) {
    if (saving.key.hash == hash) return &saving;
  }
  for (const Saving& saving : unsaved_) {
    if (saving.key.hash == hash) return &saving;
  }
  return nullptr;
}

void StoreCore::OnBelow(const TierCompletion& completion) {
  if (writing_.erase(completion.ticket) > 0) {
    if (!unsaved_.empty()) {
      Saving next = std::move(unsaved_.front());
      unsaved_.pop_front();
      Save(std::move(next));
    }
    return;
  }
  auto it = loading_.find(completion.ticket);
  if (it == loading_.end()) return;
  Loading loading = std::move(it->second);
  loading_.erase(it);
  if (!completion.status.ok()) {
    if (absl::IsDataLoss(completion.status)) ++stats_.bad_pages;
    const absl::StatusCode code = absl::IsDataLoss(completion.status)
                                      ? absl::StatusCode::kDataLoss
                                      : absl::StatusCode::kNotFound;
    for (const Asker& asker : loading.askers) {
      TellGot(asker.session, asker.get.id, code);
    }
    return;
  }
  const LayerRange all{0, ports_.pages.layout().layers};
  const uint64_t checksum = ports_.hasher.ChecksumPieces(
      ReadOnly(ports_.pages.Page(loading.hold.index(), all)));
  for (Asker& asker : loading.askers) {
    ++stats_.hits;
    Send({asker.session, std::move(asker.get), pool_.Pin(loading.hold.ref()),
          checksum, loading.key});
  }
  if (!pages_.contains(loading.key.hash)) {
    // What it saves is known below; here it came for having been asked for.
    Admit({loading.key, checksum, std::move(loading.hold), absl::Seconds(1)});
  }
}

void StoreCore::Send(Sending sending) {
  auto it = sessions_.find(sending.session);
  if (it == sessions_.end()) return;
  Session& session = it->second;
  while (sending.tries < ports_.transports.size()) {
    const size_t at = session.transport;
    KvTransport* transport = ports_.transports[at];
    for (const TransportAddress& address : session.hello.addresses) {
      if (address.kind != transport->caps().kind ||
          !transport->Connect(session.hello.worker, address).ok()) {
        continue;
      }
      const PageWrite write{sending.pin.ref().index,
                            sending.get.into,
                            {0, ports_.pages.layout().layers}};
      const PostId post =
          transport->Post(session.hello.worker, GetTransfer(sending.get.id),
                          {write}, ports_.clock->Now() + options_.limit);
      posts_[{at, post}] = std::move(sending);
      return;
    }
    ++sending.tries;
    session.transport = (at + 1) % ports_.transports.size();
  }
  TellGot(sending.session, sending.get.id, absl::StatusCode::kUnavailable);
}

void StoreCore::OnPosted(size_t transport, const PostCompletion& completion) {
  auto it = posts_.find({transport, completion.post});
  if (it == posts_.end()) return;
  Sending sending = std::move(it->second);
  posts_.erase(it);
  if (completion.status.ok()) {
    StoreGot got;
    got.id = sending.get.id;
    got.key = sending.key;
    got.checksum = sending.checksum;
    Tell(sending.session, std::move(got));
    return;
  }
  auto session = sessions_.find(sending.session);
  if (session == sessions_.end()) return;
  // The way is closed: perhaps another is not.
  if (absl::IsUnavailable(completion.status) &&
      ++sending.tries < ports_.transports.size()) {
    session->second.transport = (transport + 1) % ports_.transports.size();
    Send(std::move(sending));
    return;
  }
  Log(LogLevel::kWarning, "a page was not delivered",
      {{"worker", session->second.hello.worker.name},
       {"why", std::string(completion.status.message())}});
  TellGot(sending.session, sending.get.id, absl::StatusCode::kUnavailable);
}

}  // namespace penstock
