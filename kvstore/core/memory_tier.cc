#include "kvstore/core/memory_tier.h"

#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/base/status_macros.h"

namespace penstock {
namespace {

// What a page takes beside its bytes.
constexpr uint64_t kPageOverhead = 512;

std::vector<absl::Span<uint8_t>> WholePage(const ArenaPages& pages,
                                           BlockIndex block) {
  return pages.Page(block, {0, pages.layout().layers});
}

}  // namespace

absl::StatusOr<std::unique_ptr<MemoryTier>> MemoryTier::Create(
    Options options) {
  const uint64_t page = options.worker.pages.layout().block_bytes();
  if (options.max_bytes < page + kPageOverhead) {
    return absl::InvalidArgumentError(
        absl::StrCat("the memory tier's byte cap is ", options.max_bytes,
                     "; one page of this model takes ", page + kPageOverhead));
  }
  return std::unique_ptr<MemoryTier>(new MemoryTier(std::move(options)));
}

MemoryTier::MemoryTier(Options options)
    : options_(std::move(options)),
      page_bytes_(options_.worker.pages.layout().block_bytes()),
      each_(absl::Seconds(static_cast<double>(page_bytes_) /
                          options_.bytes_a_second)) {}

TierLookup MemoryTier::Lookup(absl::Span<const BlockHash> chain) {
  TierLookup found;
  for (BlockHash hash : chain) {
    if (!pages_.contains(hash)) break;
    policy_.Use(hash);
    ++found.blocks;
  }
  found.each = each_;
  return found;
}

absl::Status MemoryTier::Load(const TierRead& read) {
  auto it = pages_.find(read.key.hash);
  if (it == pages_.end()) return absl::NotFoundError("not in memory");
  const Page& page = it->second;
  RETURN_IF_ERROR(CheckLabel(page.label, options_.worker.identity, read.key,
                             page_bytes_, options_.worker.hasher));
  const auto pieces = WholePage(options_.worker.pages, read.into.index);
  const uint8_t* from = page.bytes.get();
  for (absl::Span<uint8_t> piece : pieces) {
    std::memcpy(piece.data(), from, piece.size());
    from += piece.size();
  }
  return CheckBytes(page.label, ReadOnly(pieces), options_.worker.hasher);
}

TierTicket MemoryTier::Fetch(std::vector<TierRead> reads) {
  CHECK(!reads.empty());
  const TierTicket ticket = ++last_ticket_;
  for (size_t i = 0; i < reads.size(); ++i) {
    absl::Status status = Load(reads[i]);
    if (status.ok()) {
      ++stats_.fetched;
    } else if (absl::IsDataLoss(status)) {
      ++stats_.bad_pages;
      Forget(reads[i].key.hash);
    }
    Complete({ticket, static_cast<int>(i), std::move(status)});
  }
  return ticket;
}

TierStored MemoryTier::Store(const TierKey& key, BlockRef from,
                             absl::Duration recompute) {
  if (pages_.contains(key.hash)) {
    policy_.Use(key.hash);
    return {TierStoreVerdict::kHeld};
  }
  if (recompute <= each_) return {TierStoreVerdict::kNotWorthIt};
  policy_.Add(key.hash, key.parent,
              {absl::ToDoubleSeconds(recompute), absl::ToDoubleSeconds(each_),
               page_bytes_});
  while (policy_.size() * (page_bytes_ + kPageOverhead) > options_.max_bytes) {
    const std::optional<BlockHash> victim = policy_.Evict();
    // Among pages that name each other as parents none is the last.
    if (!victim.has_value() || *victim == key.hash) {
      policy_.Remove(key.hash);
      return {TierStoreVerdict::kNotWorthIt};
    }
    Forget(*victim);
    ++stats_.evicted;
  }
  const auto pieces = ReadOnly(WholePage(options_.worker.pages, from.index));
  Page& page = pages_[key.hash];
  page.label =
      LabelPage(options_.worker.identity, key, pieces, options_.worker.hasher);
  if (spare_.empty()) {
    page.bytes = std::make_unique_for_overwrite<uint8_t[]>(page_bytes_);
  } else {
    page.bytes = std::move(spare_.back());
    spare_.pop_back();
  }
  uint8_t* to = page.bytes.get();
  for (absl::Span<const uint8_t> piece : pieces) {
    std::memcpy(to, piece.data(), piece.size());
    to += piece.size();
  }
  ++stats_.stored;
  const TierTicket ticket = ++last_ticket_;
  Complete({ticket, 0, absl::OkStatus()});
  return {TierStoreVerdict::kTaken, ticket};
}

void MemoryTier::Forget(BlockHash hash) {
  policy_.Remove(hash);
  auto it = pages_.find(hash);
  if (it == pages_.end()) return;
  spare_.push_back(std::move(it->second.bytes));
  pages_.erase(it);
}

void MemoryTier::Complete(TierCompletion completion) {
  completions_.push_back(std::move(completion));
  if (options_.worker.wake) options_.worker.wake();
}

std::optional<TierCompletion> MemoryTier::Poll() {
  if (completions_.empty()) return std::nullopt;
  TierCompletion completion = std::move(completions_.front());
  completions_.pop_front();
  return completion;
}

MemoryTier::Stats MemoryTier::stats() const {
  Stats stats = stats_;
  stats.pages = pages_.size();
  stats.bytes = (pages_.size() + spare_.size()) * (page_bytes_ + kPageOverhead);
  return stats;
}

absl::Span<uint8_t> MemoryTier::PageForTest(BlockHash hash) {
  auto it = pages_.find(hash);
  if (it == pages_.end()) return {};
  return absl::MakeSpan(it->second.bytes.get(), page_bytes_);
}

}  // namespace penstock
