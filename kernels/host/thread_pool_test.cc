#include "kernels/host/thread_pool.h"

#include <algorithm>
#include <atomic>
#include <thread>
#include <vector>

#include "gtest/gtest.h"

namespace penstock {
namespace {

class ThreadPoolTest : public testing::TestWithParam<std::tuple<int, bool>> {
 protected:
  int threads() const { return std::get<0>(GetParam()); }
  ThreadPool pool_{{.threads = std::get<0>(GetParam()),
                    .spin = std::get<1>(GetParam()),
                    .yields_cores = false}};
};

TEST_P(ThreadPoolTest, RunsTheBodyOnceOnEveryThread) {
  for (int repeat = 0; repeat < 200; ++repeat) {
    std::vector<int> calls(threads(), 0);
    pool_.Run([&](int thread, int count) {
      ASSERT_EQ(count, threads());
      ++calls[thread];
    });
    EXPECT_EQ(calls, std::vector<int>(threads(), 1));
  }
}

// Each thread reads what its neighbour wrote in the phase before: a barrier
// that lets one through early shows as a stale value (and as a race).
TEST_P(ThreadPoolTest, BarrierSeparatesPhases) {
  constexpr int kPhases = 300;
  std::vector<int> value(threads(), 0);
  std::vector<int> wrong(threads(), 0);
  pool_.Run([&](int thread, int count) {
    for (int phase = 1; phase <= kPhases; ++phase) {
      value[thread] = phase;
      pool_.Barrier();
      if (value[(thread + 1) % count] != phase) ++wrong[thread];
      pool_.Barrier();
    }
  });
  EXPECT_EQ(wrong, std::vector<int>(threads(), 0));
}

// Threads left out of a region miss it whole, and are there in the next.
TEST_P(ThreadPoolTest, RegionsHaveNoMoreThreadsThanTheLimit) {
  for (int repeat = 0; repeat < 200; ++repeat) {
    const int limit = repeat % threads() + 1;
    pool_.Limit(limit);
    std::vector<int> calls(threads(), 0);
    std::vector<int> value(threads(), 0);
    std::vector<int> wrong(threads(), 0);
    pool_.Run([&](int thread, int count) {
      ASSERT_EQ(count, pool_.active());
      ++calls[thread];
      for (int phase = 1; phase <= 3; ++phase) {
        value[thread] = phase;
        pool_.Barrier();
        if (value[(thread + 1) % count] != phase) ++wrong[thread];
        pool_.Barrier();
      }
    });
    std::vector<int> expected(threads(), 0);
    std::fill_n(expected.begin(), limit, 1);
    EXPECT_EQ(calls, expected);
    EXPECT_EQ(wrong, std::vector<int>(threads(), 0));
  }
}

TEST_P(ThreadPoolTest, RegionsOfTwoCallersDoNotOverlap) {
  std::atomic<int> inside{0};
  std::atomic<bool> overlapped{false};
  auto caller = [&](int tag) {
    for (int repeat = 0; repeat < 100; ++repeat) {
      pool_.Run([&](int, int) {
        const int before = inside.fetch_or(tag);
        if (before != 0 && before != tag) overlapped = true;
        pool_.Barrier();
        inside.fetch_and(~tag);
        pool_.Barrier();
      });
    }
  };
  std::thread other(caller, 1);
  caller(2);
  other.join();
  EXPECT_FALSE(overlapped);
}

INSTANTIATE_TEST_SUITE_P(Sizes, ThreadPoolTest,
                         testing::Combine(testing::Values(1, 2, 5),
                                          testing::Bool()));

}  // namespace
}  // namespace penstock
