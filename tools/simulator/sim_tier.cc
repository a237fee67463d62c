#include "tools/simulator/sim_tier.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "common/base/check.h"

namespace penstock {
namespace {

// Beyond so many pages under way none is taken.
constexpr size_t kMostJobs = 6;

}  // namespace

const SimTierPages::Page* SimTierPages::Find(BlockHash hash) const {
  auto it = pages_.find(hash);
  return it == pages_.end() ? nullptr : &it->second;
}

void SimTierPages::Put(Page page, int most) {
  const BlockHash hash = page.label.key.hash;
  if (pages_.insert_or_assign(hash, std::move(page)).second) {
    order_.push_back(hash);
  }
  while (static_cast<int>(order_.size()) > most) {
    pages_.erase(order_.front());
    order_.pop_front();
  }
}

const SimTierPages::Page* SimTierPages::Other(BlockHash hash) const {
  auto it = pages_.upper_bound(hash);
  if (it == pages_.end()) it = pages_.begin();
  return it == pages_.end() || it->first == hash ? nullptr : &it->second;
}

SimTier::SimTier(SimTierOptions options, TierWorker worker, uint64_t seed,
                 Ports ports)
    : options_(options),
      worker_(std::move(worker)),
      random_(seed),
      ports_(std::move(ports)) {}

SimTier::~SimTier() {
  for (auto& [id, job] : jobs_) ports_.timers->Cancel(job.timer);
  for (auto& [id, timer] : wakes_) ports_.timers->Cancel(timer);
}

TierLookup SimTier::Lookup(absl::Span<const BlockHash> chain) {
  TierLookup found;
  const auto unknown = std::find_if(
      chain.begin(), chain.end(),
      [&](BlockHash hash) { return options_.asks && !asked_.contains(hash); });
  if (unknown != chain.end()) {
    found.asking = true;
    const uint64_t number = next_wake_++;
    wakes_[number] = ports_.timers->Schedule(
        ports_.clock->Now() + options_.wait,
        [this, number,
         hashes = std::vector<BlockHash>(chain.begin(), chain.end())] {
          asked_.insert(hashes.begin(), hashes.end());
          wakes_.erase(number);
          worker_.wake();
        });
    return found;
  }
  while (found.blocks < static_cast<int>(chain.size()) &&
         ports_.held->Find(chain[found.blocks]) != nullptr) {
    ++found.blocks;
  }
  const absl::Duration queue =
      std::max(free_at_ - ports_.clock->Now(), absl::ZeroDuration());
  found.wait = (options_.wait + queue) * options_.foresight;
  found.each = options_.each * options_.foresight;
  return found;
}

TierTicket SimTier::Fetch(std::vector<TierRead> reads) {
  CHECK(!reads.empty());
  const TierTicket ticket = next_ticket_++;
  for (size_t i = 0; i < reads.size(); ++i) {
    Begin(ticket, static_cast<int>(i), {reads[i].key, reads[i].into},
          options_.each + (i == 0 ? options_.wait : absl::ZeroDuration()));
  }
  return ticket;
}

TierStored SimTier::Store(const TierKey& key, BlockRef from,
                          absl::Duration recompute) {
  if (ports_.held->Find(key.hash) != nullptr) {
    return {TierStoreVerdict::kHeld};
  }
  if (jobs_.size() >= kMostJobs) return {TierStoreVerdict::kBusy};
  if (options_.picky && key.hash.value() % 16 == 0) {
    return {TierStoreVerdict::kNotWorthIt};
  }
  const TierTicket ticket = next_ticket_++;
  Begin(ticket, 0, {key, from, true}, options_.each);
  return {TierStoreVerdict::kTaken, ticket};
}

void SimTier::Begin(TierTicket ticket, int page, Job job,
                    absl::Duration takes) {
  free_at_ = std::max(free_at_, ports_.clock->Now()) + takes;
  Instant at = free_at_;
  if (Chance(options_.late)) at = at + options_.lateness;
  const JobId id(ticket, page);
  job.timer = ports_.timers->Schedule(at, [this, id] {
    Finish(id);
    worker_.wake();
  });
  jobs_.emplace(id, std::move(job));
}

void SimTier::Finish(JobId id) {
  const Job& job = jobs_.at(id);
  if (Chance(options_.fails)) {
    Complete(id, absl::UnavailableError("the simulated tier failed"));
  } else {
    Complete(id, job.store ? Write(job) : Read(job));
  }
}

void SimTier::Complete(JobId id, absl::Status status) {
  done_.push_back({id.first, id.second, std::move(status)});
  jobs_.erase(id);
}

std::vector<absl::Span<uint8_t>> SimTier::PageOf(BlockRef block) const {
  return worker_.pages.Page(block.index, {0, worker_.pages.layout().layers});
}

absl::Status SimTier::Read(const Job& job) {
  const BlockHash hash = job.key.hash;
  const SimTierPages::Page* page = ports_.held->Find(hash);
  if (page == nullptr || Chance(options_.missing)) {
    ports_.held->Erase(hash);
    return absl::NotFoundError("the simulated tier has it no more");
  }
  if (Chance(options_.confused) && ports_.held->Other(hash) != nullptr) {
    page = ports_.held->Other(hash);
  }
  std::vector<absl::Span<uint8_t>> pieces = PageOf(job.block);
  const uint8_t* from = page->bytes.data();
  for (absl::Span<uint8_t> piece : pieces) {
    std::memcpy(piece.data(), from, piece.size());
    from += piece.size();
  }
  if (Chance(options_.corrupt)) {
    absl::Span<uint8_t> piece = pieces[random_.Below(pieces.size())];
    piece[random_.Below(piece.size())] ^= uint8_t{1} << random_.Below(8);
  }
  ports_.on_write(job.block.index);
  absl::Status good =
      CheckLabel(page->label, worker_.identity, job.key,
                 worker_.pages.layout().block_bytes(), worker_.hasher);
  if (good.ok()) {
    good = CheckBytes(page->label, ReadOnly(pieces), worker_.hasher);
  }
  if (!good.ok()) ports_.held->Erase(hash);
  return good;
}

absl::Status SimTier::Write(const Job& job) {
  SimTierPages::Page page;
  const auto pieces = ReadOnly(PageOf(job.block));
  page.label = LabelPage(worker_.identity, job.key, pieces, worker_.hasher);
  for (absl::Span<const uint8_t> piece : pieces) {
    page.bytes.insert(page.bytes.end(), piece.begin(), piece.end());
  }
  ports_.held->Put(std::move(page), options_.pages);
  return absl::OkStatus();
}

void SimTier::Cancel(TierTicket fetch) {
  std::vector<JobId> left;
  for (auto it = jobs_.lower_bound({fetch, 0});
       it != jobs_.end() && it->first.first == fetch; ++it) {
    left.push_back(it->first);
  }
  // One in two is under way already and ends as it would have.
  bool any = false;
  for (const JobId& id : left) {
    if (random_.Below(2) == 0) continue;
    ports_.timers->Cancel(jobs_.at(id).timer);
    Complete(id, absl::CancelledError("the fetch was cancelled"));
    any = true;
  }
  if (!any) return;
  const uint64_t number = next_wake_++;
  wakes_[number] = ports_.timers->Schedule(ports_.clock->Now(), [this, number] {
    wakes_.erase(number);
    worker_.wake();
  });
}

std::optional<TierCompletion> SimTier::Poll() {
  if (done_.empty()) return std::nullopt;
  TierCompletion next = std::move(done_.front());
  done_.pop_front();
  return next;
}

}  // namespace penstock
