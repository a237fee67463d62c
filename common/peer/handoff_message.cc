#include "common/peer/handoff_message.h"

namespace penstock {

TransferId TransferOf(const HandoffMessage& message) {
  return std::visit([](const auto& m) { return m.transfer; }, message);
}

const char* MessageName(const HandoffMessage& message) {
  static constexpr const char* kNames[] = {
      "Offer",  "Credit",    "Reject", "Grant", "ChunkDone", "ChunkNack",
      "Commit", "CommitAck", "Renew",  "Abort", "FenceAck"};
  static_assert(std::size(kNames) == std::variant_size_v<HandoffMessage>);
  return kNames[message.index()];
}

}  // namespace penstock
