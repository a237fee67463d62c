// Prefixes without end: workers store one after the other, each a new one, and
// forget to say of every other one that they evicted it. Whatever comes, the
// index stays within its memory and knows what was stored last. One input is
// one distinct prefix.

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <deque>
#include <vector>

#include "common/base/check.h"
#include "common/env/random.h"
#include "common/env/testing/mutation_report.h"
#include "router/core/prefix_index.h"

namespace penstock {
namespace {

constexpr size_t kMaxBytes = size_t{64} << 20;
constexpr size_t kWorkers = 16;
constexpr size_t kPrefixesEach = 4096;  // then the oldest goes

class PrefixChurn {
 public:
  explicit PrefixChurn(uint64_t seed) : random_(seed), index_(Limits()) {
    for (Worker& worker : workers_) {
      worker.slot = index_.AddWorker(size_t{1} << 40);
    }
  }

  // What was done beside storing one more.
  const char* Next() {
    Worker& worker = workers_[random_.Below(kWorkers)];
    std::vector<BlockHash> chain(1 + random_.Below(16));
    for (BlockHash& hash : chain) hash = BlockHash(++last_hash_ * kSpread);
    Apply(worker, BlocksStored{BlockHash(), chain});
    CHECK(index_.Match(chain).BlocksOf(worker.slot) ==
          static_cast<int>(chain.size()))
        << "what was stored last is not known";
    most_bytes_ = std::max(most_bytes_, index_.bytes());
    worker.held.push_back(std::move(chain));
    if (worker.held.size() <= kPrefixesEach) return "stored";
    std::vector<BlockHash> oldest = std::move(worker.held.front());
    worker.held.pop_front();
    if (random_.Below(2) == 0) return "stored, another dropped unsaid";
    std::reverse(oldest.begin(), oldest.end());
    Apply(worker, BlocksRemoved{std::move(oldest)});
    return "stored, another removed";
  }

  void Finish() const {
    index_.CheckStructure();
    std::printf(
        "%llu blocks stored; at most %.1f MiB of %.1f; %zu blocks "
        "known at the end\n",
        static_cast<unsigned long long>(last_hash_),
        static_cast<double>(most_bytes_) / (1 << 20),
        static_cast<double>(kMaxBytes) / (1 << 20), index_.distinct_blocks());
  }

 private:
  // Odd: distinct numbers stay distinct.
  static constexpr uint64_t kSpread = 0x9e3779b97f4a7c15;

  struct Worker {
    WorkerSlot slot = 0;
    uint64_t sequence = 0;
    std::deque<std::vector<BlockHash>> held;
  };

  static PrefixIndex::Options Limits() {
    PrefixIndex::Options options;
    options.max_bytes = kMaxBytes;
    return options;
  }
  void Apply(Worker& worker, decltype(CacheEvent::change) change) {
    const absl::Status status =
        index_.Apply(worker.slot, {++worker.sequence, std::move(change)});
    CHECK(status.ok()) << status;
    CHECK(index_.bytes() <= kMaxBytes) << index_.bytes() << " bytes";
  }

  SeededRandom random_;
  PrefixIndex index_;
  std::array<Worker, kWorkers> workers_;
  uint64_t last_hash_ = 0;
  size_t most_bytes_ = 0;
};

}  // namespace
}  // namespace penstock

int main(int argc, char** argv) {
  const auto options = penstock::ParseMutationOptions(argc, argv);
  if (!options) return 2;
  penstock::MutationReport report;
  penstock::PrefixChurn churn(options->seed);
  for (uint64_t i = 0; i < options->inputs; ++i) report.Count(churn.Next());
  churn.Finish();
  return report.Print(
      {"stored", "stored, another dropped unsaid", "stored, another removed"},
      options->min_hits);
}
