#include "common/transfer/receive_ledger.h"

#include "common/base/check.h"

namespace penstock {

void ReceiveLedger::Prepare(TransferId transfer,
                            const std::vector<BlockRef>& blocks) {
  Entry& entry = transfers_[transfer];
  CHECK(!entry.revoking) << "transfer of request " << transfer.request.value()
                         << " is being revoked";
  for (BlockRef block : blocks) {
    CHECK(block.index >= 0);
    auto [owner, fresh] = owners_.emplace(block.index, transfer);
    CHECK(owner->second == transfer)
        << "block " << block.index << " is open to another transfer";
    auto [open, added] =
        entry.generations.emplace(block.index, block.generation);
    CHECK(open->second == block.generation)
        << "block " << block.index << " is open in another generation";
  }
}

bool ReceiveLedger::Revoke(TransferId transfer) {
  auto at = transfers_.find(transfer);
  if (at == transfers_.end()) return true;
  at->second.revoking = true;
  if (at->second.landings > 0) return false;
  Forget(at);
  return true;
}

std::optional<PageRefusal> ReceiveLedger::BeginLanding(
    const PageHeader& header, ReceiveChannel& channel) {
  if (header.destination != self_) return PageRefusal::kWrongIncarnation;
  if (header.sequence <= channel.last_sequence) {
    return PageRefusal::kReplayedSequence;
  }
  channel.last_sequence = header.sequence;
  auto at = transfers_.find(header.transfer);
  if (at == transfers_.end() || at->second.revoking) {
    return PageRefusal::kNotPrepared;
  }
  auto block = at->second.generations.find(header.block.index);
  if (block == at->second.generations.end()) return PageRefusal::kNotPrepared;
  if (block->second != header.block.generation) {
    return PageRefusal::kStaleGeneration;
  }
  ++at->second.landings;
  return std::nullopt;
}

ReceiveLedger::LandingEnd ReceiveLedger::EndLanding(TransferId transfer) {
  auto at = transfers_.find(transfer);
  CHECK(at != transfers_.end() && at->second.landings > 0)
      << "no landing of request " << transfer.request.value()
      << " is in progress";
  --at->second.landings;
  LandingEnd end{at->second.revoking,
                 at->second.revoking && at->second.landings == 0};
  if (end.fenced) Forget(at);
  return end;
}

bool ReceiveLedger::revoking(TransferId transfer) const {
  auto at = transfers_.find(transfer);
  return at != transfers_.end() && at->second.revoking;
}

void ReceiveLedger::Forget(Transfers::iterator at) {
  for (const auto& [index, generation] : at->second.generations) {
    owners_.erase(index);
  }
  transfers_.erase(at);
}

}  // namespace penstock
