#include "kvstore/core/tier_stack.h"

#include <cstring>
#include <string>

#include "gtest/gtest.h"
#include "kvstore/core/memory_tier.h"

namespace penstock {
namespace {

constexpr KvLayout kLayout{
    .layers = 2, .kv_heads = 1, .head_dim = 4, .value_dim = 4};
constexpr int kBlocks = 16;

class TierStackTest : public testing::Test {
 protected:
  TierStackTest() {
    memory_.resize(kBlocks * kLayout.block_bytes());
    BlockHash parent = hasher_.Root({ContentId(1), "", "", ""});
    for (int i = 0; i < kBlocks; ++i) {
      TierKey key;
      key.tokens.fill(i);
      key.parent = parent;
      parent = key.hash = hasher_.Next(parent, key.tokens);
      chain_.push_back(key);
      hashes_.push_back(key.hash);
    }
    upper_ = Add(3);
    lower_ = Add(100);
    stack_ = std::make_unique<TierStack>(std::move(tiers_));
  }

  // A tier with room for so many pages.
  MemoryTier* Add(int pages) {
    const TierWorker worker = {
        {kLayout.id(), ContentId(1), NumericsId(1)},
        ArenaPages(Arena{absl::MakeSpan(memory_), -1}, kLayout),
        hasher_,
        [] {}};
    // With what it keeps beside each.
    const auto bytes = pages * (kLayout.block_bytes() + 512);
    auto tier = MemoryTier::Create({worker, bytes});
    EXPECT_TRUE(tier.ok()) << tier.status();
    MemoryTier* raw = tier->get();
    tiers_.push_back(*std::move(tier));
    return raw;
  }

  absl::Span<uint8_t> Block(BlockIndex block) {
    return absl::MakeSpan(memory_).subspan(block * kLayout.block_bytes(),
                                           kLayout.block_bytes());
  }
  TierStoreVerdict Store(KvTier& tier, int page) {
    std::memset(Block(0).data(), page + 1, Block(0).size());
    const TierStored stored =
        tier.Store(chain_[page], {0, 1}, absl::Seconds(1));
    if (stored.verdict != TierStoreVerdict::kTaken) return stored.verdict;
    const auto ended = tier.Poll();
    EXPECT_TRUE(ended.has_value() && ended->ticket == stored.ticket &&
                ended->status.ok());
    EXPECT_FALSE(tier.Poll().has_value());
    return stored.verdict;
  }

  std::vector<uint8_t> memory_;
  BlockHasher hasher_{HashSecret("stack")};
  std::vector<TierKey> chain_;
  std::vector<BlockHash> hashes_;
  std::vector<std::unique_ptr<KvTier>> tiers_;
  MemoryTier* upper_;
  MemoryTier* lower_;
  std::unique_ptr<TierStack> stack_;
};

TEST_F(TierStackTest, StoresInEachAndFindsWhatAnyHolds) {
  for (int page = 0; page < 8; ++page) {
    EXPECT_EQ(Store(*stack_, page), TierStoreVerdict::kTaken);
  }
  EXPECT_EQ(lower_->stats().pages, 8u);
  EXPECT_LT(upper_->stats().pages, 8u);
  EXPECT_GT(upper_->stats().pages, 0u);
  EXPECT_EQ(stack_->Lookup(hashes_).blocks, 8);
}

TEST_F(TierStackTest, BringsEachPageFromWhereItIs) {
  for (int page : {0, 2}) Store(*upper_, page);
  for (int page : {1, 3}) Store(*lower_, page);
  EXPECT_EQ(stack_->Lookup(hashes_).blocks, 4);
  std::vector<TierRead> reads;
  for (int page = 0; page < 6; ++page) {
    reads.push_back({chain_[page], {page + 4, 1}});
  }
  const TierTicket ticket = stack_->Fetch(reads);
  std::string ends(6, '?');
  for (int i = 0; i < 6; ++i) {
    const auto ended = stack_->Poll();
    ASSERT_TRUE(ended.has_value());
    EXPECT_EQ(ended->ticket, ticket);
    ends[ended->page] = ended->status.ok()                ? 'y'
                        : absl::IsNotFound(ended->status) ? 'n'
                                                          : 'e';
  }
  EXPECT_EQ(ends, "yyyynn");
  EXPECT_FALSE(stack_->Poll().has_value());
  for (int page = 0; page < 4; ++page) {
    EXPECT_EQ(Block(page + 4)[7], page + 1) << page;
  }
}

TEST_F(TierStackTest, APageFromBelowIsTakenAboveWhenItIsOffered) {
  Store(*lower_, 0);
  EXPECT_EQ(Store(*stack_, 0), TierStoreVerdict::kTaken);
  EXPECT_EQ(upper_->stats().pages, 1u);
  EXPECT_EQ(Store(*stack_, 0), TierStoreVerdict::kHeld);
}

}  // namespace
}  // namespace penstock
