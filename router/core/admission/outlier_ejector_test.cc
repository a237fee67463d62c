#include "router/core/admission/outlier_ejector.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

namespace penstock {
namespace {

class OutlierEjectorTest : public ::testing::Test {
 protected:
  void Pool(int workers) {
    for (int i = 0; i < workers; ++i) ejector_.Add(Name(i));
  }
  static std::string Name(int i) { return absl::StrCat("w", i); }
  void Record(int worker, int good, int bad) {
    for (int i = 0; i < good; ++i) ejector_.Record(Name(worker), true, now_);
    for (int i = 0; i < bad; ++i) ejector_.Record(Name(worker), false, now_);
  }
  void Pass(absl::Duration time) {
    now_ = now_ + time;
    ejector_.Advance(now_);
  }

  Instant now_ = Instant::FromNanos(1);
  OutlierEjector::Options options_;
  OutlierEjector ejector_{options_};
};

TEST_F(OutlierEjectorTest, OneInTwoFailuresIsSeen) {
  Pool(3);
  Record(0, 10, 10);
  Record(1, 20, 0);
  Record(2, 20, 0);
  EXPECT_FALSE(ejector_.ejected("w0"));
  Pass(options_.interval);
  EXPECT_TRUE(ejector_.ejected("w0"));
  EXPECT_EQ(ejector_.ejections(), 1);
  EXPECT_EQ(ejector_.next(), now_ + options_.eject_for);
  Pass(options_.eject_for - absl::Milliseconds(1));
  EXPECT_TRUE(ejector_.ejected("w0"));
  Pass(absl::Milliseconds(1));
  EXPECT_FALSE(ejector_.ejected("w0"));
}

TEST_F(OutlierEjectorTest, TheSecondTimeIsTwiceAsLong) {
  Pool(3);
  for (int time = 1; time <= 2; ++time) {
    Record(0, 0, 20);
    Record(1, 20, 0);
    Pass(options_.interval);
    EXPECT_EQ(ejector_.next(), now_ + time * options_.eject_for);
    Pass(time * options_.eject_for);
  }
}

TEST_F(OutlierEjectorTest, FewRequestsAreNoEvidence) {
  Pool(3);
  Record(0, 0, options_.min_requests - 1);
  Record(1, 100, 0);
  Pass(options_.interval);
  EXPECT_FALSE(ejector_.ejected("w0"));
  Record(0, 0, 1);  // what was counted is forgotten
  Pass(options_.interval);
  EXPECT_FALSE(ejector_.ejected("w0"));
}

// Something is wrong that is no worker's own fault.
TEST_F(OutlierEjectorTest, WhatAllSufferFromEjectsNobody) {
  Pool(6);
  for (int i = 0; i < 6; ++i) Record(i, 5, 10);
  Pass(options_.interval);
  EXPECT_EQ(ejector_.ejections(), 0);
}

TEST_F(OutlierEjectorTest, NoMoreThanAThirdAndTheWorstFirst) {
  Pool(7);
  for (int i = 0; i < 3; ++i) Record(i, 20 - 5 * i, 5 + 5 * i);
  for (int i = 3; i < 7; ++i) Record(i, 500, 0);
  Pass(options_.interval);
  EXPECT_EQ(ejector_.ejections(), 2);
  EXPECT_FALSE(ejector_.ejected("w0"));
  EXPECT_TRUE(ejector_.ejected("w1"));
  EXPECT_TRUE(ejector_.ejected("w2"));
}

TEST_F(OutlierEjectorTest, OfTwoNobodyIsTheOddOneOut) {
  Pool(2);
  Record(0, 0, 100);
  Record(1, 100, 0);
  Pass(options_.interval);
  EXPECT_EQ(ejector_.ejections(), 0);
}

TEST_F(OutlierEjectorTest, ANewLifeHasNoPast) {
  Pool(3);
  Record(0, 0, 100);
  Record(1, 100, 0);
  Pass(options_.interval);
  ASSERT_TRUE(ejector_.ejected("w0"));
  ejector_.Add("w0");
  EXPECT_FALSE(ejector_.ejected("w0"));
  ejector_.Remove("w0");
  EXPECT_FALSE(ejector_.Record("w0", false, now_));
  EXPECT_EQ(ejector_.next(), Instant::Infinite()) << "nothing is to be done";
}

}  // namespace
}  // namespace penstock
