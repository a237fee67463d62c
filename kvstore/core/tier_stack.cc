#include "kvstore/core/tier_stack.h"

#include <algorithm>

#include "common/base/check.h"

namespace penstock {

TierStack::TierStack(std::vector<std::unique_ptr<KvTier>> tiers)
    : tiers_(std::move(tiers)) {
  CHECK(!tiers_.empty());
}

TierStack::Holder TierStack::HolderOf(absl::Span<const BlockHash> chain) {
  Holder holder;
  for (; holder.tier < tiers_.size(); ++holder.tier) {
    holder.found = tiers_[holder.tier]->Lookup(chain);
    if (holder.found.blocks > 0) return holder;
    holder.asking |= holder.found.asking;
  }
  holder.found = {};
  return holder;
}

TierLookup TierStack::Lookup(absl::Span<const BlockHash> chain) {
  TierLookup all;
  absl::Duration sum;
  while (all.blocks < static_cast<int>(chain.size())) {
    const Holder holder = HolderOf(chain.subspan(all.blocks));
    if (holder.tier == tiers_.size()) {
      all.asking = holder.asking;
      break;
    }
    all.blocks += holder.found.blocks;
    // Tiers work at the same time, but each is waited for.
    all.wait = std::max(all.wait, holder.found.wait);
    sum += holder.found.each * static_cast<double>(holder.found.blocks);
  }
  if (all.blocks > 0) all.each = sum / static_cast<double>(all.blocks);
  return all;
}

TierTicket TierStack::Fetch(std::vector<TierRead> reads) {
  CHECK(!reads.empty());
  const TierTicket ticket = ++last_ticket_;
  std::vector<BlockHash> chain;
  for (const TierRead& read : reads) chain.push_back(read.key.hash);
  std::vector<std::vector<TierRead>> by_tier(tiers_.size());
  std::vector<std::vector<int>> pages(tiers_.size());
  for (int at = 0; at < static_cast<int>(reads.size());) {
    const Holder holder = HolderOf(absl::MakeConstSpan(chain).subspan(at));
    if (holder.tier == tiers_.size()) {
      done_.push_back(
          {ticket, at++, absl::NotFoundError("no tier holds the page")});
      continue;
    }
    for (int i = 0; i < holder.found.blocks; ++i, ++at) {
      by_tier[holder.tier].push_back(reads[at]);
      pages[holder.tier].push_back(at);
    }
  }
  for (size_t tier = 0; tier < tiers_.size(); ++tier) {
    if (by_tier[tier].empty()) continue;
    const TierTicket part = tiers_[tier]->Fetch(std::move(by_tier[tier]));
    parts_[{tier, part}] = {ticket, std::move(pages[tier])};
  }
  return ticket;
}

TierStored TierStack::Store(const TierKey& key, BlockRef from,
                            absl::Duration recompute) {
  TierStored stored;
  const TierTicket ticket = last_ticket_ + 1;
  for (size_t tier = 0; tier < tiers_.size(); ++tier) {
    const TierStored part = tiers_[tier]->Store(key, from, recompute);
    if (part.verdict == TierStoreVerdict::kTaken) {
      parts_[{tier, part.ticket}] = {ticket, {}};
      ++stores_[ticket].open;
    } else if (stored.verdict == TierStoreVerdict::kNotWorthIt ||
               part.verdict == TierStoreVerdict::kBusy) {
      // One that is busy may take it later.
      stored.verdict = part.verdict;
    }
  }
  if (!stores_.contains(ticket)) return stored;
  last_ticket_ = ticket;
  return {TierStoreVerdict::kTaken, ticket};
}

void TierStack::Cancel(TierTicket fetch) {
  for (const auto& [part, whole] : parts_) {
    if (whole.ticket == fetch) tiers_[part.first]->Cancel(part.second);
  }
}

std::optional<TierCompletion> TierStack::Poll() {
  if (!done_.empty()) {
    TierCompletion next = std::move(done_.front());
    done_.pop_front();
    return next;
  }
  for (size_t tier = 0; tier < tiers_.size(); ++tier) {
    while (auto completion = tiers_[tier]->Poll()) {
      auto part = parts_.find({tier, completion->ticket});
      CHECK(part != parts_.end());
      Whole& whole = part->second;
      const TierTicket ticket = whole.ticket;
      if (stores_.contains(ticket)) {
        parts_.erase(part);
        if (auto ended = FinishStore(ticket, completion->status)) return ended;
        continue;
      }
      int& page = whole.pages.at(completion->page);
      CHECK(page >= 0) << "a page completed twice";
      completion->ticket = ticket;
      completion->page = std::exchange(page, -1);
      if (std::all_of(whole.pages.begin(), whole.pages.end(),
                      [](int left) { return left < 0; })) {
        parts_.erase(part);
      }
      return completion;
    }
  }
  return std::nullopt;
}

std::optional<TierCompletion> TierStack::FinishStore(
    TierTicket ticket, const absl::Status& status) {
  Storing& storing = stores_.at(ticket);
  storing.stored |= status.ok();
  if (!status.ok()) storing.status = status;
  if (--storing.open > 0) return std::nullopt;
  TierCompletion ended{ticket, 0,
                       storing.stored ? absl::OkStatus() : storing.status};
  stores_.erase(ticket);
  return ended;
}

}  // namespace penstock
