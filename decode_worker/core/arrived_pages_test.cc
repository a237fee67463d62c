#include "decode_worker/core/arrived_pages.h"

#include "gtest/gtest.h"

namespace penstock {
namespace {

using State = ArrivedPages::State;

constexpr BlockRef kBlock{3, 7};

Instant At(int nanos) { return Instant::FromNanos(nanos); }

PageArrival Whole(uint64_t checksum, int began, int ended) {
  PageArrival arrival;
  arrival.block = kBlock;
  arrival.landed = true;
  arrival.checksum = checksum;
  arrival.began = At(began);
  arrival.ended = At(ended);
  return arrival;
}

PageArrival Bad(uint64_t checksum, int began, int ended) {
  PageArrival arrival = Whole(checksum, began, ended);
  arrival.status = absl::DataLossError("damaged");
  return arrival;
}

TEST(ArrivedPagesTest, AWholePageCountsARefusedOneDoesNot) {
  ArrivedPages pages;
  EXPECT_EQ(pages.StateOf(kBlock), State::kMissing);
  EXPECT_FALSE(pages.Add(Bad(1, 10, 20)));
  EXPECT_EQ(pages.StateOf(kBlock), State::kMissing);
  EXPECT_EQ(pages.Checksum(kBlock), std::nullopt);
  EXPECT_FALSE(pages.Add(Whole(5, 30, 40)));
  EXPECT_EQ(pages.StateOf(kBlock), State::kThere);
  EXPECT_EQ(pages.Checksum(kBlock), 5u);
  // Another generation is another page.
  EXPECT_EQ(pages.StateOf({3, 8}), State::kMissing);
}

TEST(ArrivedPagesTest, WhatIsWrittenOverAPageSpoilsIt) {
  ArrivedPages pages;
  pages.Add(Whole(5, 10, 20));
  EXPECT_TRUE(pages.Add(Bad(6, 30, 40)));
  EXPECT_EQ(pages.StateOf(kBlock), State::kSpoiled);
  EXPECT_EQ(pages.Checksum(kBlock), std::nullopt);
  EXPECT_FALSE(pages.Add(Bad(6, 41, 42)));  // it was so already
  // What lies on top of that counts.
  EXPECT_FALSE(pages.Add(Whole(5, 50, 60)));
  EXPECT_EQ(pages.Checksum(kBlock), 5u);
}

TEST(ArrivedPagesTest, ReportsOfTwoTransportsMayBeReadInEitherOrder) {
  // The damaged copy came first, and is read last.
  ArrivedPages first;
  first.Add(Whole(5, 30, 40));
  EXPECT_FALSE(first.Add(Bad(6, 10, 20)));
  EXPECT_EQ(first.StateOf(kBlock), State::kThere);

  // It came last, and is read first.
  ArrivedPages last;
  last.Add(Bad(6, 50, 60));
  EXPECT_FALSE(last.Add(Whole(5, 30, 40)));
  EXPECT_EQ(last.StateOf(kBlock), State::kSpoiled);

  // They were written at the same time: nobody can tell.
  for (int began : {35, 40}) {
    ArrivedPages both;
    both.Add(Whole(5, began, 50));
    EXPECT_TRUE(both.Add(Bad(6, 30, 40)));
    EXPECT_EQ(both.StateOf(kBlock), State::kSpoiled);
  }
}

TEST(ArrivedPagesTest, TheSameBytesOnceMoreChangeNothing) {
  ArrivedPages pages;
  pages.Add(Whole(5, 10, 20));
  EXPECT_FALSE(pages.Add(Whole(5, 30, 40)));
  EXPECT_FALSE(pages.Add(Bad(5, 50, 60)));  // refused as late, not as damaged
  EXPECT_EQ(pages.Checksum(kBlock), 5u);
  // The later one is what counts against what ended before it.
  EXPECT_FALSE(pages.Add(Bad(6, 21, 25)));
  EXPECT_EQ(pages.Checksum(kBlock), 5u);
}

TEST(ArrivedPagesTest, OtherBytesReplaceAPage) {
  ArrivedPages pages;
  pages.Add(Whole(5, 10, 20));
  EXPECT_TRUE(pages.Add(Whole(6, 30, 40)));
  EXPECT_EQ(pages.Checksum(kBlock), 6u);
  // Both at once: neither counts.
  EXPECT_TRUE(pages.Add(Whole(7, 35, 45)));
  EXPECT_EQ(pages.StateOf(kBlock), State::kSpoiled);
}

TEST(ArrivedPagesTest, WhatNeverTouchedThePageIsNotCounted) {
  ArrivedPages pages;
  pages.Add(Whole(5, 10, 20));
  PageArrival stale = Bad(0, 30, 40);
  stale.landed = false;
  EXPECT_FALSE(pages.Add(stale));
  EXPECT_EQ(pages.Checksum(kBlock), 5u);
  pages.Forget(kBlock);
  EXPECT_EQ(pages.StateOf(kBlock), State::kMissing);
}

}  // namespace
}  // namespace penstock
