#include <pthread.h>
#include <signal.h>

#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "common/env/real/monotonic_clock.h"
#include "common/runtime/inbox.h"
#include "common/runtime/loop_thread.h"
#include "common/runtime/shutdown_signal.h"
#include "common/runtime/stderr_log.h"
#include "gtest/gtest.h"

namespace penstock {
namespace {

TEST(InboxTest, RefusesBeyondItsCapacityButKeepsWhatMustNotBeLost) {
  Inbox inbox(2);
  EXPECT_TRUE(inbox.TryPost([] {}));
  EXPECT_TRUE(inbox.TryPost([] {}));
  EXPECT_FALSE(inbox.TryPost([] {}));
  EXPECT_TRUE(inbox.Post([] {}));
  EXPECT_EQ(inbox.Take(absl::ZeroDuration()).size(), 3u);
  EXPECT_TRUE(inbox.TryPost([] {}));
}

TEST(InboxTest, AClosedOneAcceptsNothing) {
  Inbox inbox(2);
  EXPECT_TRUE(inbox.Post([] {}));
  inbox.Close();
  EXPECT_FALSE(inbox.TryPost([] {}));
  EXPECT_FALSE(inbox.Post([] {}));
  EXPECT_EQ(inbox.Take(absl::InfiniteDuration()).size(), 1u);
  EXPECT_TRUE(inbox.Take(absl::InfiniteDuration()).empty());
}

TEST(InboxTest, AWakeIsRememberedOnce) {
  Inbox inbox(1);
  inbox.Wake();
  inbox.Wake();
  EXPECT_TRUE(inbox.Take(absl::InfiniteDuration()).empty());
  EXPECT_TRUE(inbox.Take(absl::Milliseconds(1)).empty());
}

TEST(InboxTest, KeepsTheOrderOfEachProducer) {
  constexpr int kProducers = 4;
  constexpr int kEach = 2000;
  Inbox inbox(64);
  std::vector<std::vector<int>> seen(kProducers);
  std::vector<std::thread> producers;
  for (int p = 0; p < kProducers; ++p) {
    producers.emplace_back([&inbox, &seen, p] {
      for (int i = 0; i < kEach; ++i) {
        while (!inbox.TryPost([&seen, p, i] { seen[p].push_back(i); })) {
          std::this_thread::yield();
        }
      }
    });
  }
  for (int taken = 0; taken < kProducers * kEach;) {
    for (Inbox::Task& task : inbox.Take(absl::InfiniteDuration())) {
      task();
      ++taken;
    }
  }
  for (std::thread& producer : producers) producer.join();
  for (const std::vector<int>& each : seen) {
    ASSERT_EQ(each.size(), static_cast<size_t>(kEach));
    for (int i = 0; i < kEach; ++i) ASSERT_EQ(each[i], i);
  }
}

TEST(LoopThreadTest, RunsTasksTimersAndTickOnItsOwnThread) {
  MonotonicClock clock;
  LoopThread loop(clock, {.name = "test"});
  const std::thread::id main = std::this_thread::get_id();
  std::vector<std::string> order;
  bool elsewhere = true;
  int ticks = 0;
  loop.Start([&] { ++ticks; });
  std::thread::id fired_on = main;
  Inbox fired(1);
  loop.RunAndWait([&] {
    elsewhere = std::this_thread::get_id() != main;
    order.push_back("task");
    const Instant now = loop.clock().Now();
    loop.timers().Schedule(now + absl::Milliseconds(2), [&] {
      order.push_back("later");
      fired_on = std::this_thread::get_id();
      fired.Wake();
    });
    loop.timers().Schedule(now + absl::Milliseconds(1),
                           [&] { order.push_back("sooner"); });
  });
  fired.Take(absl::Seconds(30));
  loop.Stop();
  EXPECT_TRUE(elsewhere);
  EXPECT_NE(fired_on, main);
  EXPECT_EQ(order, (std::vector<std::string>{"task", "sooner", "later"}));
  EXPECT_GE(ticks, 2);
}

TEST(LoopThreadTest, AWakeRunsTheTick) {
  MonotonicClock clock;
  LoopThread loop(clock, {.name = "test"});
  Inbox ticked(1);
  loop.Start([&] { ticked.Wake(); });
  loop.inbox()->Wake();
  EXPECT_TRUE(ticked.Take(absl::InfiniteDuration()).empty());
}

TEST(LoopThreadTest, StopRunsWhatWasPostedAndLeavesAClosedInbox) {
  MonotonicClock clock;
  auto loop = std::make_unique<LoopThread>(clock, LoopThread::Options{"test"});
  auto runs = std::make_shared<int>(0);
  loop->inbox()->Post([runs] { ++*runs; });
  std::shared_ptr<Inbox> inbox = loop->inbox();
  loop->Start(nullptr);
  loop->Stop();
  EXPECT_EQ(*runs, 1);
  EXPECT_EQ(runs.use_count(), 1);
  loop.reset();
  EXPECT_FALSE(inbox->Post([] {}));
}

TEST(ShutdownSignalTest, TurnsATermIntoAValue) {
  ShutdownSignal signal;
  EXPECT_EQ(signal.WaitFor(absl::Milliseconds(1)), 0);
  pthread_kill(pthread_self(), SIGTERM);
  EXPECT_EQ(signal.Wait(), SIGTERM);
}

TEST(StderrLogTest, QuotesWhatWouldBreakALine) {
  EXPECT_EQ(FormatLogLine("T", LogLevel::kInfo, "router", "worker registered",
                          {{"worker", "decode-0"},
                           {"note", "a=\"b\"\nlevel=error"},
                           {"empty", ""}}),
            "time=T level=info role=router msg=\"worker registered\" "
            "worker=decode-0 note=\"a=\\\"b\\\"\\nlevel=error\" empty=\"\"\n");
}

}  // namespace
}  // namespace penstock
