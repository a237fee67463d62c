#include "common/peer/handoff_message.h"

#include <string>
#include <utility>
#include <vector>

#include "common/peer/leg.h"
#include "gtest/gtest.h"

namespace penstock {
namespace {

const TransferId kTransfer{RequestId(7), AttemptId(3)};

template <typename Message>
HandoffMessage Of() {
  Message message;
  message.transfer = kTransfer;
  return message;
}

TEST(HandoffMessageTest, EachIsKnownByItsNameAndTransfer) {
  const std::pair<HandoffMessage, const char*> kMessages[] = {
      {Of<Offer>(), "Offer"},         {Of<Credit>(), "Credit"},
      {Of<Reject>(), "Reject"},       {Of<Grant>(), "Grant"},
      {Of<ChunkDone>(), "ChunkDone"}, {Of<ChunkNack>(), "ChunkNack"},
      {Of<Commit>(), "Commit"},       {Of<CommitAck>(), "CommitAck"},
      {Of<Renew>(), "Renew"},         {Of<Abort>(), "Abort"},
      {Of<FenceAck>(), "FenceAck"}};
  for (const auto& [message, name] : kMessages) {
    EXPECT_STREQ(MessageName(message), name);
    EXPECT_EQ(TransferOf(message), kTransfer) << name;
  }
}

TEST(LegRequestTest, HistoryGoesOnWithWhatTheOneAnswerDelivered) {
  LegRequest leg;
  leg.request.id = kTransfer.request;
  leg.attempt = kTransfer.attempt;
  leg.request.prompt = {5, 6, 7};
  EXPECT_EQ(leg.transfer(), kTransfer);
  EXPECT_EQ(leg.history(), (std::vector<TokenId>{5, 6, 7}));
  leg.delivered = {{{8, 0}, {9, 0}}};
  EXPECT_EQ(leg.history(), (std::vector<TokenId>{5, 6, 7, 8, 9}));
  // Two answers part after the prompt.
  leg.request.n = 2;
  leg.delivered = {{{8, 0}}, {{4, 0}}};
  EXPECT_EQ(leg.history(), (std::vector<TokenId>{5, 6, 7}));
}

}  // namespace
}  // namespace penstock
