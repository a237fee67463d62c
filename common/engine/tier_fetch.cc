#include "common/engine/tier_fetch.h"

#include <algorithm>

#include "common/base/check.h"
#include "common/model/kv_layout.h"

namespace penstock {

TierFetch::TierFetch(TierTicket ticket, int first, int pages)
    : ticket_(ticket),
      first_(first),
      pages_(pages, Page::kPending),
      pending_(pages) {
  CHECK(pages > 0);
}

void TierFetch::SetPage(int page, bool there) {
  if (page >= pages()) return;
  CHECK(pages_[page] == Page::kPending);
  pages_[page] = there ? Page::kThere : Page::kMissing;
  --pending_;
}

int TierFetch::Limit(int computed) const {
  for (int page = std::max(0, computed / kBlockTokens - first_); page < pages();
       ++page) {
    if (pages_[page] == Page::kMissing) continue;
    const int begin = (first_ + page) * kBlockTokens;
    // A block that was begun is computed to its end.
    if (begin >= computed) return begin;
  }
  return kNoLimit;
}

int TierFetch::Skip(int computed) const {
  if (computed % kBlockTokens != 0) return computed;
  int block = computed / kBlockTokens;
  while (block >= first_ && block < first_ + pages() &&
         pages_[block - first_] == Page::kThere) {
    ++block;
  }
  return block * kBlockTokens;
}

int TierFetch::GiveUp() {
  auto first = std::find(pages_.begin(), pages_.end(), Page::kPending);
  CHECK(first != pages_.end());
  pages_.erase(first, pages_.end());
  pending_ = 0;
  return first_ + pages();
}

}  // namespace penstock
