#include "common/peer/handoff_message.h"

namespace penstock {

TransferId TransferOf(const HandoffMessage& message) {
  return std::visit([](const auto& m) { return m.transfer; }, message);
}

HandoffSender SenderOf(const HandoffMessage& message) {
  struct Visitor {
    using enum HandoffSender;
    HandoffSender operator()(const Offer&) { return kPrefill; }
    HandoffSender operator()(const Credit&) { return kDecode; }
    HandoffSender operator()(const Reject&) { return kDecode; }
    HandoffSender operator()(const Grant&) { return kDecode; }
    HandoffSender operator()(const ChunkDone&) { return kPrefill; }
    HandoffSender operator()(const ChunkNack&) { return kDecode; }
    HandoffSender operator()(const Commit&) { return kPrefill; }
    HandoffSender operator()(const CommitAck&) { return kDecode; }
    HandoffSender operator()(const Renew&) { return kEither; }
    HandoffSender operator()(const Abort&) { return kEither; }
    HandoffSender operator()(const FenceAck&) { return kPrefill; }
    HandoffSender operator()(const PullAsk&) { return kPrefill; }
    HandoffSender operator()(const PullDone&) { return kDecode; }
  };
  return std::visit(Visitor(), message);
}

const char* MessageName(const HandoffMessage& message) {
  static constexpr const char* kNames[] = {
      "Offer",     "Credit",  "Reject",    "Grant", "ChunkDone",
      "ChunkNack", "Commit",  "CommitAck", "Renew", "Abort",
      "FenceAck",  "PullAsk", "PullDone"};
  static_assert(std::size(kNames) == std::variant_size_v<HandoffMessage>);
  return kNames[message.index()];
}

}  // namespace penstock
