#include "common/model/text/bpe_merger.h"

#include <algorithm>
#include <limits>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/base/check.h"

namespace penstock {
namespace {

constexpr TokenId kGone = -1;
constexpr int32_t kEnd = -1;

absl::Status BadMerge(size_t rank, absl::string_view rule,
                      absl::string_view what) {
  return absl::InvalidArgumentError(
      absl::StrCat("tokenizer.ggml.merges[", rank, "] '", rule, "': ", what));
}

}  // namespace

absl::StatusOr<BpeMerger> BpeMerger::Create(
    absl::Span<const std::string> merges, const TokenIds& ids) {
  if (merges.size() > std::numeric_limits<int32_t>::max()) {
    return absl::InvalidArgumentError("tokenizer.ggml.merges: too many");
  }
  BpeMerger merger;
  merger.rules_.reserve(merges.size());
  std::string joined;
  for (size_t rank = 0; rank < merges.size(); ++rank) {
    const absl::string_view rule = merges[rank];
    const size_t space = rule.find(' ');
    if (space == absl::string_view::npos || space == 0 ||
        space + 1 == rule.size()) {
      return BadMerge(rank, rule, "is not two tokens with a space between");
    }
    const absl::string_view left = rule.substr(0, space);
    const absl::string_view right = rule.substr(space + 1);
    joined.assign(left.data(), left.size());
    joined.append(right.data(), right.size());
    const auto left_id = ids.find(left);
    const auto right_id = ids.find(right);
    const auto result = ids.find(joined);
    if (left_id == ids.end() || right_id == ids.end() || result == ids.end()) {
      return BadMerge(rank, rule, "names a token that the vocabulary lacks");
    }
    // The better rank of a rule that is given twice holds.
    merger.rules_.try_emplace(Pair(left_id->second, right_id->second),
                              Rule{static_cast<int32_t>(rank), result->second});
  }
  return merger;
}

void BpeMerger::Session::Offer(int32_t left) {
  const int32_t right = nodes_[left].next;
  if (right == kEnd) return;
  const Rule* rule = merger_.Find(nodes_[left].id, nodes_[right].id);
  if (rule == nullptr) return;
  heap_.push_back({rule->rank, left, rule->result});
  std::push_heap(heap_.begin(), heap_.end());
}

void BpeMerger::Session::Join(const Candidate& best) {
  Node& left = nodes_[best.left];
  Node& right = nodes_[left.next];
  left.id = best.result;
  left.next = right.next;
  right.id = kGone;
  if (left.next != kEnd) nodes_[left.next].previous = best.left;
  if (left.previous != kEnd) Offer(left.previous);
  Offer(best.left);
}

void BpeMerger::Session::Merge(std::vector<TokenId>& symbols) {
  const size_t count = symbols.size();
  CHECK(count < std::numeric_limits<int32_t>::max()) << "piece too long";
  if (count < 2) return;
  nodes_.clear();
  for (size_t i = 0; i < count; ++i) {
    const auto place = static_cast<int32_t>(i);
    nodes_.push_back({symbols[i], place - 1, i + 1 < count ? place + 1 : kEnd});
  }
  heap_.clear();
  for (size_t i = 0; i + 1 < count; ++i) Offer(static_cast<int32_t>(i));
  while (!heap_.empty()) {
    std::pop_heap(heap_.begin(), heap_.end());
    const Candidate best = heap_.back();
    heap_.pop_back();
    // Stale when either symbol has changed since the offer.
    const Node& left = nodes_[best.left];
    if (left.id == kGone || left.next == kEnd) continue;
    const Rule* rule = merger_.Find(left.id, nodes_[left.next].id);
    if (rule == nullptr || rule->rank != best.rank) continue;
    Join(best);
  }
  symbols.clear();
  for (int32_t at = 0; at != kEnd; at = nodes_[at].next) {
    symbols.push_back(nodes_[at].id);
  }
}

}  // namespace penstock
