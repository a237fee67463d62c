#include "decode_worker/core/arrived_pages.h"

#include <algorithm>

namespace penstock {

bool ArrivedPages::Add(const PageArrival& arrival) {
  if (!arrival.landed) return false;
  Page& page = pages_[arrival.block];
  const bool was_there = page.there();
  const bool same =
      page.whole.has_value() && page.whole->checksum == arrival.checksum;
  if (!arrival.status.ok()) {
    if (same) return false;  // the same bytes once more
    page.spoiled =
        std::max(page.spoiled.value_or(arrival.ended), arrival.ended);
    return was_there && !page.there();
  }
  if (page.whole.has_value() && !same) {
    page.spoiled =
        std::max(page.spoiled.value_or(page.whole->ended), page.whole->ended);
  }
  if (!same || page.whole->began < arrival.began) {
    page.whole = Landing{arrival.checksum, arrival.began, arrival.ended};
  }
  return was_there && !same;
}

const ArrivedPages::Page* ArrivedPages::Landed(BlockRef block) const {
  auto page = pages_.find(block);
  if (page == pages_.end() || !page->second.whole.has_value()) return nullptr;
  return &page->second;
}

ArrivedPages::State ArrivedPages::StateOf(BlockRef block) const {
  const Page* page = Landed(block);
  if (page == nullptr) return State::kMissing;
  return page->there() ? State::kThere : State::kSpoiled;
}

std::optional<uint64_t> ArrivedPages::Checksum(BlockRef block) const {
  const Page* page = Landed(block);
  if (page == nullptr || !page->there()) return std::nullopt;
  return page->whole->checksum;
}

}  // namespace penstock
