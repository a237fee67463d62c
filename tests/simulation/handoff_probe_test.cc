#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/simulation/handoff_fixture.h"

namespace penstock {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::StartsWith;

// Writes down what telemetry hears.
struct RecordingProbe : HandoffProbe {
  void TransferEnded(Direction direction, absl::string_view transport,
                     absl::string_view reason, uint64_t bytes,
                     absl::Duration took) override {
    transfers.push_back(absl::StrCat(direction == Direction::kIn ? "in" : "out",
                                     " ", transport, " ", reason, " ",
                                     bytes / SimModel::Layout().block_bytes()));
    durations.push_back(took);
  }
  void ChunkNacked(absl::string_view why) override { nacks.emplace_back(why); }
  void PageRefused(absl::string_view why) override {
    refusals.emplace_back(why);
  }
  void LegStarted(bool prefill) override {
    legs.push_back(prefill ? "prefill" : "decode");
  }
  void LegEnded(bool prefill, absl::string_view reason) override {
    legs.push_back(absl::StrCat(prefill ? "prefill " : "decode ", reason));
  }
  std::vector<std::string> transfers, nacks, refusals, legs;
  std::vector<absl::Duration> durations;
};

class HandoffProbeTest : public HandoffFixture {
 protected:
  void SetUp() override { Start({}); }

  void Start(SimWorkerOptions options) {
    prefill_.reset();
    decode_.reset();
    options.handoff_probe = &at_prefill_;
    prefill_ = Make("p", 1, {true, false}, options);
    options.handoff_probe = &at_decode_;
    decode_ = Make("d", 2, {false, true}, options);
  }

  RecordingProbe at_prefill_, at_decode_;
};

TEST_F(HandoffProbeTest, BothSidesReportATransfer) {
  Leg p, d;
  StartPair(Request(1, 100, 20), p, d);
  const Instant start = clock_.Now();
  ASSERT_TRUE(RunUntil([&] { return p.ended.has_value(); }));
  const absl::Duration until_acked = clock_.Now() - start;
  ASSERT_TRUE(RunUntil([&] { return d.ended.has_value(); }));
  // 100 tokens lie in 7 blocks.
  EXPECT_THAT(at_prefill_.transfers, ElementsAre("out tcp ok 7"));
  EXPECT_THAT(at_decode_.transfers, ElementsAre("in tcp ok 7"));
  EXPECT_THAT(at_prefill_.legs, ElementsAre("prefill", "prefill ok"));
  EXPECT_THAT(at_decode_.legs, ElementsAre("decode", "decode ok"));
  EXPECT_THAT(at_prefill_.nacks, IsEmpty());
  EXPECT_THAT(at_decode_.nacks, IsEmpty());
  EXPECT_THAT(at_decode_.refusals, IsEmpty());
  for (absl::Duration took :
       {at_prefill_.durations.at(0), at_decode_.durations.at(0)}) {
    EXPECT_GT(took, absl::ZeroDuration());
    EXPECT_LT(took, until_acked);
  }
}

TEST_F(HandoffProbeTest, ATransferThatIsCancelledEndsWithItsReason) {
  GenerateRequest request = Request(1, 600, 20);
  Leg p, d;
  StartPair(request, p, d);
  ASSERT_TRUE(RunUntil(
      [&] { return decode_->core().pool().counts().in_transfer > 0; }));
  decode_->core().CancelLeg(LegKind::kDecode, {request.id, AttemptId(1)});
  ASSERT_TRUE(RunUntil([&] { return p.ended && d.ended; }));
  EXPECT_THAT(at_decode_.transfers, ElementsAre(StartsWith("in ")));
  EXPECT_THAT(at_decode_.transfers[0], testing::HasSubstr(" CANCELLED "));
  EXPECT_THAT(at_decode_.legs, ElementsAre("decode", "decode CANCELLED"));
  EXPECT_THAT(at_prefill_.legs,
              ElementsAre("prefill", "prefill TRANSFER_FAILED"));
  ExpectClean(*prefill_);
  ExpectClean(*decode_);
}

TEST_F(HandoffProbeTest, ASpoiledPageIsANack) {
  SimWorkerOptions options;
  options.engine.prefill_chunk = 2 * kBlockTokens;
  Start(options);
  std::optional<BlockRef> second;  // of chunk 1
  network_.filter = [&](const WorkerKey&, const WorkerKey&,
                        const HandoffMessage& message) {
    if (auto* grant = std::get_if<Grant>(&message)) second = grant->blocks[3];
    if (auto* done = std::get_if<ChunkDone>(&message);
        done != nullptr && done->chunk == 2 && second.has_value()) {
      network_.SpoilPage(decode_->key(), TransportKind::kTcp,
                         {RequestId(1), AttemptId(1)},
                         *std::exchange(second, std::nullopt));
    }
    return true;
  };
  Leg p, d;
  StartPair(Request(1, 154, 8), p, d);
  ASSERT_TRUE(RunUntil([&] { return p.ended && d.ended; }));
  EXPECT_TRUE(d.ended->ok()) << *d.ended;
  EXPECT_EQ(at_decode_.refusals.size(), 1u);
  EXPECT_THAT(at_decode_.nacks, ElementsAre("a page was written over"));
  // Ten blocks, and two of them once more.
  EXPECT_THAT(at_decode_.transfers, ElementsAre("in tcp ok 12"));
}

}  // namespace
}  // namespace penstock
