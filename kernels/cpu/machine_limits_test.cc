#include "kernels/cpu/machine_limits.h"

#include <cstring>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/cpu/kernel_test_support.h"

namespace penstock {
namespace {

class LimitLoopsTest : public testing::TestWithParam<CpuPath> {
 protected:
  const LimitLoops& loops() const { return FindKernels(GetParam())->limits; }
};

struct alignas(64) Scratch {
  template <class T>
  void Fill(T value) {
    for (size_t at = 0; at < kLimitScratchBytes; at += sizeof value) {
      std::memcpy(bytes + at, &value, sizeof value);
    }
  }
  // Of the first `count` floats.
  double Sum(size_t count) const {
    std::vector<float> floats(count);
    std::memcpy(floats.data(), bytes, count * sizeof(float));
    double sum = 0;
    for (float x : floats) sum += x;
    return sum;
  }
  uint8_t bytes[kLimitScratchBytes];
};

// The floats a loop has written are those that are no longer as filled.
size_t Written(const Scratch& scratch, const Scratch& filled) {
  size_t count = 0;
  while (count * 4 < kLimitScratchBytes &&
         std::memcmp(scratch.bytes + count * 4, filled.bytes + count * 4, 4) !=
             0) {
    ++count;
  }
  return count;
}

// Products of ones: the sums count the multiplications that were done.
TEST_P(LimitLoopsTest, DotBytesDoesWhatItSays) {
  Scratch scratch, filled;
  filled.Fill<uint8_t>(1);
  scratch = filled;
  const uint64_t ops = loops().dot_bytes(3, scratch.bytes);
  EXPECT_EQ(2 * scratch.Sum(Written(scratch, filled)), ops);
  EXPECT_EQ(loops().dot_bytes(6, filled.bytes), 2 * ops);
}

TEST_P(LimitLoopsTest, MultiplyFloatsDoesWhatItSays) {
  Scratch scratch, filled;
  filled.Fill(1.0f);
  scratch = filled;
  const uint64_t ops = loops().multiply_floats(3, scratch.bytes);
  EXPECT_EQ(2 * scratch.Sum(Written(scratch, filled)), ops);
}

TEST_P(LimitLoopsTest, ReadSeesEveryFloat) {
  TestNumbers numbers(1);
  std::vector<float> floats(3 * 1024);
  double sum = 0;
  for (float& x : floats) {
    x = static_cast<float>(numbers.Bits() % 64);  // sums are exact
    sum += x;
  }
  EXPECT_EQ(loops().read(reinterpret_cast<const uint8_t*>(floats.data()),
                         floats.size() * sizeof(float)),
            sum);
}

INSTANTIATE_TEST_SUITE_P(Paths, LimitLoopsTest,
                         testing::ValuesIn(TestablePaths()),
                         [](const auto& info) {
                           return std::string(CpuPathName(info.param));
                         });

TEST(DotBfloat16Test, DoesWhatItSays) {
  const auto loop = FindDotBfloat16();
  if (loop == nullptr) GTEST_SKIP() << "no vdpbf16ps";
  Scratch scratch, filled;
  filled.Fill<uint16_t>(0x3f80);
  scratch = filled;
  const uint64_t ops = loop(3, scratch.bytes);
  EXPECT_EQ(2 * scratch.Sum(Written(scratch, filled)), ops);
}

TEST(MachineLimitsTest, MeasuresSomething) {
  ThreadPool pool({.threads = 2, .spin = false});
  const auto limits = MeasureMachineLimits(*FindKernels(CpuPath::kAuto), pool);
  ASSERT_TRUE(limits.ok()) << limits.status();
  EXPECT_GT(limits->read_bytes_per_s, 0);
  EXPECT_GT(limits->int8_ops_per_s, 0);
  EXPECT_GT(limits->bfloat16_ops_per_s, 0);
  EXPECT_GT(limits->float_ops_per_s, 0);
}

TEST(MachineLimitsTest, ReadsWhileItComputes) {
  const MachineLimits limits = {.read_bytes_per_s = 10,
                                .int8_ops_per_s = 400,
                                .bfloat16_ops_per_s = 200,
                                .float_ops_per_s = 100};
  StepCost cost = {.weight_bytes = 20, .kv_bytes = 10};
  cost.int8_ops = 400;
  cost.bfloat16_ops = 100;
  LeastTime least = LeastTimeOf(cost, limits);
  EXPECT_EQ(least.memory_s, 3);
  EXPECT_EQ(least.compute_s, 1.5);
  EXPECT_EQ(least.seconds(), 3);
  cost.float_ops = 250;
  least = LeastTimeOf(cost, limits);
  EXPECT_EQ(least.seconds(), 4);
}

}  // namespace
}  // namespace penstock
