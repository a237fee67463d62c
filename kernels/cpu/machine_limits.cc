#include "kernels/cpu/machine_limits.h"

#include <algorithm>
#include <chrono>
#include <functional>
#include <vector>

#include "common/base/check.h"
#include "common/base/status_macros.h"
#include "kernels/cpu/huge_buffer.h"

namespace penstock {
namespace {

using SteadyClock = std::chrono::steady_clock;

constexpr int kPasses = 6;
constexpr size_t kReadBytes = size_t{256} << 20;
constexpr size_t kReadUnit = 4096;

// Work a second of the best pass. `part(thread)` does one thread's and says how
// much it was.
double BestRate(ThreadPool& pool, const std::function<double(int)>& part) {
  double best = 0;
  std::vector<double> done(pool.threads());
  for (int pass = 0; pass < kPasses; ++pass) {
    std::fill(done.begin(), done.end(), 0);
    const auto start = SteadyClock::now();
    pool.Run([&](int thread, int) { done[thread] = part(thread); });
    const double seconds =
        std::chrono::duration<double>(SteadyClock::now() - start).count();
    double all = 0;
    for (double work : done) all += work;
    best = std::max(best, all / seconds);
  }
  return best;
}

struct alignas(64) Scratch {
  uint8_t bytes[kLimitScratchBytes];
};

double LoopRate(ThreadPool& pool, uint64_t (*loop)(int, uint8_t*)) {
  constexpr uint64_t kOpsOfAPass = 500'000'000;
  constexpr int kTrialRounds = 16;
  std::vector<Scratch> scratch(pool.threads());
  // Operands stay the same size: products of ones and twos.
  for (Scratch& own : scratch) std::fill_n(own.bytes, kLimitScratchBytes, 1);
  const uint64_t trial = loop(kTrialRounds, scratch[0].bytes);
  const int rounds =
      static_cast<int>(std::max<uint64_t>(1, kOpsOfAPass / trial)) *
      kTrialRounds;
  return BestRate(pool, [&](int thread) {
    uint8_t* own = scratch[thread].bytes;
    std::fill_n(own, kLimitScratchBytes, 1);
    return static_cast<double>(loop(rounds, own));
  });
}

}  // namespace

absl::StatusOr<MachineLimits> MeasureMachineLimits(const KernelTable& kernels,
                                                   ThreadPool& pool) {
  ASSIGN_OR_RETURN(const HugeBuffer buffer, HugeBuffer::Create(kReadBytes));
  // Written once, or every page is the same zeros in the cache.
  std::fill_n(buffer.data(), kReadBytes, 1);
  const size_t share = kReadBytes / pool.threads() / kReadUnit * kReadUnit;
  std::vector<float> sums(pool.threads());
  const LimitLoops& loops = kernels.limits;
  MachineLimits limits;
  limits.read_bytes_per_s = BestRate(pool, [&](int thread) {
    sums[thread] = loops.read(buffer.data() + thread * share, share);
    return static_cast<double>(share);
  });
  CHECK(*std::max_element(sums.begin(), sums.end()) > 0);
  limits.int8_ops_per_s = LoopRate(pool, loops.dot_bytes);
  limits.float_ops_per_s = LoopRate(pool, loops.multiply_floats);
  const auto dot_bfloat16 = FindDotBfloat16();
  limits.bfloat16_ops_per_s = dot_bfloat16 == nullptr
                                  ? limits.float_ops_per_s
                                  : LoopRate(pool, dot_bfloat16);
  return limits;
}

MachineLimits Best(const MachineLimits& a, const MachineLimits& b) {
  return {std::max(a.read_bytes_per_s, b.read_bytes_per_s),
          std::max(a.int8_ops_per_s, b.int8_ops_per_s),
          std::max(a.bfloat16_ops_per_s, b.bfloat16_ops_per_s),
          std::max(a.float_ops_per_s, b.float_ops_per_s)};
}

double LeastTime::seconds() const { return std::max(memory_s, compute_s); }

LeastTime LeastTimeOf(const StepCost& cost, const MachineLimits& limits) {
  auto seconds = [](uint64_t work, double rate) {
    return work == 0 ? 0 : static_cast<double>(work) / rate;
  };
  return {seconds(cost.bytes(), limits.read_bytes_per_s),
          seconds(cost.int8_ops, limits.int8_ops_per_s) +
              seconds(cost.bfloat16_ops, limits.bfloat16_ops_per_s) +
              seconds(cost.float_ops, limits.float_ops_per_s)};
}

}  // namespace penstock
