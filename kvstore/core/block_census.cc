#include "kvstore/core/block_census.h"

#include "absl/strings/str_cat.h"

namespace penstock {

BlockCensus::BlockCensus(const BlockPool* pool)
    : pool_(pool), counted_(pool->total()) {}

BlockCensus::Counted& BlockCensus::Of(BlockRef block) {
  stale_ += pool_->blocks_[block.index].generation != block.generation;
  return counted_[block.index];
}

void BlockCensus::Add(const BlockHold& hold) {
  if (hold) ++Of(hold.ref()).references;
}

void BlockCensus::Add(const std::vector<BlockHold>& holds) {
  for (const BlockHold& hold : holds) Add(hold);
}

void BlockCensus::Add(const TransferPin& pin) {
  if (pin) ++Of(pin.ref()).transfers;
}

void BlockCensus::Add(const std::vector<TransferPin>& pins) {
  for (const TransferPin& pin : pins) Add(pin);
}

void BlockCensus::AddQuarantined(BlockRef block) {
  Of(block).quarantined = true;
}

void BlockCensus::AddCached(BlockRef block) { Of(block).cached = true; }

absl::Status BlockCensus::Compare() const {
  if (stale_ > 0) {
    return absl::InternalError(
        absl::StrCat(stale_, " holds name a block's earlier life"));
  }
  for (size_t i = 0; i < counted_.size(); ++i) {
    const Counted& said = counted_[i];
    const BlockPool::Block& known = pool_->blocks_[i];
    if (said.references == known.references &&
        said.transfers == known.transfers &&
        said.quarantined == known.quarantined && said.cached == known.cached) {
      continue;
    }
    return absl::InternalError(absl::StrCat(
        "block ", i, " has ", known.references, " references and ",
        known.transfers, " pins", known.quarantined ? ", quarantined" : "",
        known.cached ? ", cached" : "", "; its holders have ", said.references,
        " and ", said.transfers, said.quarantined ? ", quarantined" : "",
        said.cached ? ", cached" : ""));
  }
  return absl::OkStatus();
}

}  // namespace penstock
