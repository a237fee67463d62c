#include "kvstore/core/page_label.h"

#include <numeric>

#include "gtest/gtest.h"

namespace penstock {
namespace {

class PageLabelTest : public testing::Test {
 protected:
  PageLabelTest() : bytes_(96) {
    std::iota(bytes_.begin(), bytes_.end(), 1);
    std::iota(key_.tokens.begin(), key_.tokens.end(), 1000);
    key_.parent = hasher_.Root({ContentId(7), "", "", ""});
    key_.hash = hasher_.Next(key_.parent, key_.tokens);
  }

  // In two pieces, as a layout may have it.
  std::vector<absl::Span<const uint8_t>> Page() const {
    auto all = absl::MakeConstSpan(bytes_);
    return {all.subspan(0, 40), all.subspan(40)};
  }
  PageLabel Label() const {
    return LabelPage(identity_, key_, Page(), hasher_);
  }
  absl::StatusCode Check(const PageLabel& label, const TierKey& asked) const {
    return CheckLabel(label, identity_, asked, bytes_.size(), hasher_).code();
  }

  BlockHasher hasher_{HashSecret("test key")};
  TierIdentity identity_{LayoutId(1), ContentId(7), NumericsId(3)};
  TierKey key_;
  std::vector<uint8_t> bytes_;
};

TEST_F(PageLabelTest, TakesItsOwnPage) {
  const PageLabel label = Label();
  EXPECT_EQ(label.bytes, 96u);
  EXPECT_TRUE(CheckLabel(label, identity_, key_, bytes_.size(), hasher_).ok());
  EXPECT_TRUE(CheckBytes(label, Page(), hasher_).ok());
  // However the bytes are cut.
  EXPECT_TRUE(CheckBytes(label, {absl::MakeConstSpan(bytes_)}, hasher_).ok());
}

TEST_F(PageLabelTest, NoticesAnyFlippedBit) {
  const PageLabel label = Label();
  for (size_t bit = 0; bit < bytes_.size() * 8; ++bit) {
    bytes_[bit / 8] ^= 1u << (bit % 8);
    EXPECT_EQ(CheckBytes(label, Page(), hasher_).code(),
              absl::StatusCode::kDataLoss)
        << bit;
    bytes_[bit / 8] ^= 1u << (bit % 8);
  }
}

TEST_F(PageLabelTest, NoticesMissingBytes) {
  const PageLabel label = Label();
  EXPECT_FALSE(
      CheckBytes(label, {absl::MakeConstSpan(bytes_).first(95)}, hasher_).ok());
  EXPECT_FALSE(CheckLabel(label, identity_, key_, 97, hasher_).ok());
}

TEST_F(PageLabelTest, RefusesAnotherBlocksPage) {
  TierKey other = key_;
  ++other.tokens[kBlockTokens - 1];
  other.hash = hasher_.Next(other.parent, other.tokens);
  EXPECT_EQ(Check(Label(), other), absl::StatusCode::kDataLoss);
  // The same tokens behind others.
  other = key_;
  other.parent = key_.hash;
  other.hash = hasher_.Next(other.parent, other.tokens);
  EXPECT_EQ(Check(Label(), other), absl::StatusCode::kDataLoss);
}

TEST_F(PageLabelTest, RefusesTokensThatDoNotMakeTheHash) {
  key_.tokens[0] = 5;
  EXPECT_EQ(Check(Label(), key_), absl::StatusCode::kDataLoss);
}

TEST_F(PageLabelTest, RefusesAnotherIdentity) {
  for (TierIdentity other :
       {TierIdentity{LayoutId(2), ContentId(7), NumericsId(3)},
        TierIdentity{LayoutId(1), ContentId(8), NumericsId(3)},
        TierIdentity{LayoutId(1), ContentId(7), NumericsId(4)}}) {
    EXPECT_EQ(CheckLabel(Label(), other, key_, bytes_.size(), hasher_).code(),
              absl::StatusCode::kDataLoss);
  }
}

}  // namespace
}  // namespace penstock
