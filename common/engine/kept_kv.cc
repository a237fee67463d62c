#include "common/engine/kept_kv.h"

#include <algorithm>
#include <utility>

#include "common/base/check.h"
#include "common/base/sometimes.h"
#include "common/model/kv_layout.h"

namespace penstock {
namespace {

int InCommon(const KeptKv::Prefix& prefix, absl::Span<const TokenId> history) {
  const int most = std::min(prefix.computed, static_cast<int>(history.size()));
  auto end = prefix.tokens.begin() + most;
  return static_cast<int>(
      std::mismatch(prefix.tokens.begin(), end, history.begin()).first -
      prefix.tokens.begin());
}

}  // namespace

KeptKv::KeptKv(absl::Duration lease, const Clock* clock, Timers* timers)
    : lease_(lease), clock_(clock), timers_(timers) {}

KeptKv::~KeptKv() {
  for (auto& [request, entry] : kept_) timers_->Cancel(entry.expiry);
}

int KeptKv::Keep(RequestId request, Prefix prefix) {
  CHECK(prefix.computed > 0 &&
        prefix.computed <= static_cast<int>(prefix.tokens.size()) &&
        BlocksFor(prefix.computed) <= static_cast<int>(prefix.blocks.size()));
  Drop(request);
  if (kept_.size() >= kMostRequests) Drop(Oldest());
  for (BlockHold& hold : prefix.blocks) hold.SetKept(true);
  const int computed = prefix.computed;
  Entry entry;
  entry.prefix = std::move(prefix);
  entry.order = next_order_++;
  entry.expiry = ArmExpiry(request);
  kept_.emplace(request, std::move(entry));
  return computed;
}

TimerId KeptKv::ArmExpiry(RequestId request) {
  return timers_->Schedule(clock_->Now() + lease_, [this, request] {
    Sometimes<"kept KV was given up when its lease ended">();
    Drop(request);
  });
}

void KeptKv::Renew(RequestId request) {
  auto it = kept_.find(request);
  if (it == kept_.end()) return;
  timers_->Cancel(it->second.expiry);
  it->second.expiry = ArmExpiry(request);
}

KeptKv::Prefix KeptKv::Take(RequestId request,
                            absl::Span<const TokenId> history) {
  auto it = kept_.find(request);
  if (it == kept_.end()) return {};
  Prefix taken = std::move(it->second.prefix);
  Drop(request);
  taken.computed = InCommon(taken, history);
  taken.tokens.resize(taken.computed);
  taken.blocks.erase(taken.blocks.begin() + BlocksFor(taken.computed),
                     taken.blocks.end());
  for (BlockHold& hold : taken.blocks) hold.SetKept(false);
  return taken;
}

int KeptKv::Look(RequestId request, absl::Span<const TokenId> history) const {
  auto it = kept_.find(request);
  return it == kept_.end() ? 0 : InCommon(it->second.prefix, history);
}

RequestId KeptKv::Oldest() const {
  return std::min_element(kept_.begin(), kept_.end(),
                          [](const auto& a, const auto& b) {
                            return a.second.order < b.second.order;
                          })
      ->first;
}

bool KeptKv::DropOldest() {
  if (kept_.empty()) return false;
  Sometimes<"kept KV was given up to a request that needed room">();
  Drop(Oldest());
  return true;
}

void KeptKv::CountBlocks(BlockCensus& census) const {
  for (const auto& [request, entry] : kept_) census.Add(entry.prefix.blocks);
}

void KeptKv::Drop(RequestId request) {
  auto it = kept_.find(request);
  if (it == kept_.end()) return;
  timers_->Cancel(it->second.expiry);
  kept_.erase(it);
}

}  // namespace penstock
