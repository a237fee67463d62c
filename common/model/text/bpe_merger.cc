#include "common/model/text/bpe_merger.h"

#include <algorithm>
#include <functional>
#include <limits>

#include "common/base/check.h"

namespace penstock {
namespace {

constexpr TokenId kGone = -1;
constexpr int32_t kEnd = -1;
constexpr int32_t kNoRank = std::numeric_limits<int32_t>::max();
constexpr uint64_t kEmpty = ~uint64_t{0};  // no pair: ids are not negative

// Pieces up to here are merged by looking for the best pair over and over.
constexpr size_t kShort = 40;

}  // namespace

BpeMerger::BpeMerger(absl::Span<const Rule> rules) {
  CHECK(rules.size() < size_t{1} << 30) << "too many merges";
  size_t size = 2;
  while (size < rules.size() * 2) size *= 2, --shift_;
  table_.assign(size, Entry{kEmpty, kGone, kNoRank});
  for (const Rule& rule : rules) {
    const uint64_t pair = Pair(rule.left, rule.right);
    size_t slot = Slot(pair);
    while (table_[slot].pair != kEmpty && table_[slot].pair != pair) {
      slot = (slot + 1) & (size - 1);
    }
    if (rule.rank < table_[slot].rank) {
      table_[slot] = {pair, rule.result, rule.rank};
    }
  }
}

const BpeMerger::Entry* BpeMerger::Find(TokenId left, TokenId right) const {
  const uint64_t pair = Pair(left, right);
  for (size_t slot = Slot(pair);; slot = (slot + 1) & (table_.size() - 1)) {
    if (table_[slot].pair == pair) return &table_[slot];
    if (table_[slot].pair == kEmpty) return nullptr;
  }
}

void BpeMerger::Session::Merge(std::vector<TokenId>& symbols) {
  CHECK(symbols.size() < std::numeric_limits<int32_t>::max())
      << "piece too long";
  if (symbols.size() < 2) return;
  if (symbols.size() <= kShort) {
    MergeShort(symbols);
  } else {
    MergeLong(symbols);
  }
}

void BpeMerger::Session::MergeShort(std::vector<TokenId>& symbols) {
  size_t count = symbols.size();
  pair_ranks_.resize(count);
  pair_results_.resize(count);
  const auto look_up = [&](size_t i) {
    ++work_.lookups;
    const Entry* rule = merger_.Find(symbols[i], symbols[i + 1]);
    pair_ranks_[i] = rule == nullptr ? kNoRank : rule->rank;
    pair_results_[i] = rule == nullptr ? kGone : rule->result;
  };
  for (size_t i = 0; i + 1 < count; ++i) look_up(i);
  while (count > 1) {
    const auto ranks = pair_ranks_.begin();
    const auto best = std::min_element(ranks, ranks + (count - 1));
    if (*best == kNoRank) break;
    const size_t at = best - ranks;
    symbols[at] = pair_results_[at];
    // What is right of the pair moves up.
    std::copy(symbols.begin() + at + 2, symbols.begin() + count,
              symbols.begin() + at + 1);
    if (at + 2 < count) {
      std::copy(ranks + at + 2, ranks + (count - 1), ranks + at + 1);
      std::copy(pair_results_.begin() + at + 2,
                pair_results_.begin() + (count - 1),
                pair_results_.begin() + at + 1);
    }
    --count;
    if (at > 0) look_up(at - 1);
    if (at + 1 < count) look_up(at);
  }
  symbols.resize(count);
}

// Most pushes are of the rank of the one before.
uint32_t BpeMerger::Session::BucketOf(int32_t rank) {
  if (last_bucket_ < buckets_.size() && buckets_[last_bucket_].rank == rank) {
    return last_bucket_;
  }
  const auto [entry, added] =
      bucket_of_rank_.try_emplace(rank, static_cast<uint32_t>(buckets_.size()));
  if (added) buckets_.push_back({rank, {}});
  return last_bucket_ = entry->second;
}

void BpeMerger::Session::Push(int32_t rank, int32_t place) {
  const uint32_t index = BucketOf(rank);
  Bucket& bucket = buckets_[index];
  std::vector<int32_t>& places = bucket.places;
  if (bucket.head == places.size()) {
    places.clear();
    bucket.head = 0;
    bucket.heap = false;
    ranks_.emplace_back(rank, index);
    std::push_heap(ranks_.begin(), ranks_.end(), std::greater<>());
  } else if (!bucket.heap && place < places.back()) {
    places.erase(places.begin(), places.begin() + bucket.head);
    bucket.head = 0;
    bucket.heap = true;
    // In order from the least is a heap already.
  }
  places.push_back(place);
  if (bucket.heap) {
    ++work_.sorted;
    std::push_heap(places.begin(), places.end(), std::greater<>());
  }
}

int32_t BpeMerger::Session::Pop(Bucket& bucket) {
  if (!bucket.heap) return bucket.places[bucket.head++];
  std::pop_heap(bucket.places.begin(), bucket.places.end(), std::greater<>());
  const int32_t place = bucket.places.back();
  bucket.places.pop_back();
  return place;
}

void BpeMerger::Session::Offer(int32_t left) {
  Node& node = nodes_[left];
  node.rank = kNoRank;
  if (node.next == kEnd) return;
  ++work_.lookups;
  const Entry* rule = merger_.Find(node.id, nodes_[node.next].id);
  if (rule == nullptr) return;
  node.rank = rule->rank;
  node.result = rule->result;
  Push(rule->rank, left);
}

void BpeMerger::Session::Join(int32_t place) {
  Node& left = nodes_[place];
  Node& right = nodes_[left.next];
  left.id = left.result;
  left.next = right.next;
  right.rank = kNoRank;
  if (left.next != kEnd) nodes_[left.next].previous = place;
  if (left.previous != kEnd) Offer(left.previous);
  Offer(place);
}

void BpeMerger::Session::MergeLong(std::vector<TokenId>& symbols) {
  const auto count = static_cast<int32_t>(symbols.size());
  nodes_.clear();
  nodes_.reserve(symbols.size());
  for (int32_t i = 0; i < count; ++i) {
    nodes_.push_back(
        {symbols[i], i - 1, i + 1 < count ? i + 1 : kEnd, kNoRank, kGone});
  }
  for (int32_t i = 0; i + 1 < count; ++i) Offer(i);
  while (!ranks_.empty()) {
    const auto [rank, index] = ranks_.front();
    Bucket& bucket = buckets_[index];
    const int32_t place = Pop(bucket);
    if (bucket.head == bucket.places.size()) {
      std::pop_heap(ranks_.begin(), ranks_.end(), std::greater<>());
      ranks_.pop_back();
    }
    // Stale when either symbol has changed since the offer.
    if (nodes_[place].rank == rank) Join(place);
  }
  buckets_.clear();
  bucket_of_rank_.clear();
  symbols.clear();
  for (int32_t at = 0; at != kEnd; at = nodes_[at].next) {
    symbols.push_back(nodes_[at].id);
  }
}

}  // namespace penstock
