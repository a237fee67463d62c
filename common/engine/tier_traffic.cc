#include "common/engine/tier_traffic.h"

#include <utility>

#include "common/base/check.h"
#include "common/base/sometimes.h"

namespace penstock {

TierTraffic::TierTraffic(Ports ports, int max_stores)
    : ports_(ports), max_stores_(max_stores) {
  if (ports_.tier != nullptr) ports_.cache->TrackCold();
}

TierLookup TierTraffic::Lookup(absl::Span<const BlockHash> chain) {
  CHECK(usable());
  return ports_.tier->Lookup(chain);
}

TierTicket TierTraffic::Fetch(SequenceId owner, std::vector<TierRead> reads) {
  CHECK(usable());
  Fetching fetching;
  fetching.owner = owner;
  fetching.open = static_cast<int>(reads.size());
  for (const TierRead& read : reads) {
    fetching.pins.push_back(ports_.pool->Pin(read.into));
  }
  const TierTicket ticket = ports_.tier->Fetch(std::move(reads));
  CHECK(fetches_.emplace(ticket, std::move(fetching)).second);
  return ticket;
}

void TierTraffic::Drop(TierTicket fetch, bool late) {
  auto it = fetches_.find(fetch);
  if (it == fetches_.end()) return;
  it->second.owner = SequenceId();
  it->second.late = late;
  if (late) ++late_;
  ports_.tier->Cancel(fetch);
}

bool TierTraffic::StoreCold() {
  if (!usable()) return false;
  bool progress = false;
  while (!busy_ && stores_.size() < max_stores_) {
    const auto cold = ports_.cache->NextCold();
    if (!cold.has_value()) break;
    const TierStored stored = ports_.tier->Store(
        cold->key, cold->block,
        ports_.cost->Prefill(kBlockTokens, cold->depth * kBlockTokens));
    if (stored.verdict == TierStoreVerdict::kBusy) {
      Sometimes<"the tier was too busy to take a page">();
      // Without one of ours under way nothing would tell when it is not.
      busy_ = !stores_.empty();
      break;
    }
    ports_.cache->SetOffered(*cold);
    if (stored.verdict != TierStoreVerdict::kTaken) continue;
    progress = true;
    CHECK(stores_.emplace(stored.ticket, ports_.pool->Pin(cold->block)).second);
  }
  return progress;
}

void TierTraffic::CountBlocks(BlockCensus& census) const {
  for (const auto& [ticket, fetching] : fetches_) census.Add(fetching.pins);
  for (const auto& [ticket, pin] : stores_) census.Add(pin);
}

std::optional<TierTraffic::Arrival> TierTraffic::Poll() {
  if (ports_.tier == nullptr) return std::nullopt;
  while (auto completion = ports_.tier->Poll()) {
    if (stores_.contains(completion->ticket)) {
      FinishStore(*completion);
    } else if (auto arrival = FinishRead(*completion)) {
      return arrival;
    }
  }
  return std::nullopt;
}

std::optional<TierTraffic::Arrival> TierTraffic::FinishRead(
    const TierCompletion& completion) {
  auto it = fetches_.find(completion.ticket);
  CHECK(it != fetches_.end()) << "a completion of nothing";
  Fetching& fetching = it->second;
  TransferPin& pin = fetching.pins.at(completion.page);
  CHECK(pin) << "a page completed twice";
  pin.Reset();
  std::optional<Arrival> arrival;
  if (fetching.owner) {
    arrival = Arrival{fetching.owner, completion.page, completion.status};
    if (completion.status.ok()) {
      Sometimes<"a page came up from the tier">();
      ports_.probe->PageFetched(ports_.page_bytes);
    } else {
      ports_.probe->PageNotFetched(completion.status.code());
    }
  }
  if (--fetching.open == 0) {
    if (fetching.late) --late_;
    fetches_.erase(it);
  }
  return arrival;
}

void TierTraffic::FinishStore(const TierCompletion& completion) {
  stores_.erase(completion.ticket);
  busy_ = false;
  if (completion.status.ok()) {
    ports_.probe->PageStored(ports_.page_bytes);
  } else {
    Sometimes<"a page could not be stored below the pool">();
    ports_.probe->PageNotStored(completion.status.code());
  }
}

}  // namespace penstock
