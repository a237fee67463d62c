#include "router/bench/index_bench.h"

#include <malloc.h>

#include <algorithm>
#include <cstdint>
#include <numeric>

#include "common/base/check.h"

namespace penstock {
namespace {

size_t HeapBytes() {
  const struct mallinfo2 info = mallinfo2();
  return info.uordblks + info.hblkhd;
}

constexpr uint64_t kHotFirst = uint64_t{1} << 62;

std::vector<BlockHash> HotChain(size_t blocks) {
  std::vector<BlockHash> chain;
  for (size_t i = 0; i < blocks; ++i) {
    chain.push_back(BlockHash(kHotFirst + i * 0x9e3779b97f4a7c15u));
  }
  return chain;
}

// What a policy adds: the least of load and uncached work, exactly.
size_t ArgMin(const std::vector<int>& loads, const std::vector<int>& depths,
              int chain) {
  int least = INT32_MAX;
  size_t at = 0;
  for (size_t i = 0; i < loads.size(); ++i) {
    const int cost = loads[i] + 8 * (chain - depths[i]);
    if (cost >= least) continue;
    least = cost;
    at = i;
  }
  return at;
}

}  // namespace

double IndexBench::Seconds(Instant since) const {
  return absl::ToDoubleSeconds(clock_.Now() - since);
}

double IndexBench::Rate(double units_each,
                        const std::function<void(size_t)>& act) const {
  act(0);
  const Instant start = clock_.Now();
  size_t calls = 0;
  double seconds = 0;
  for (size_t batch = 1; seconds < absl::ToDoubleSeconds(time_); batch *= 2) {
    for (size_t i = 0; i < batch; ++i) act(++calls);
    seconds = Seconds(start);
  }
  return static_cast<double>(calls) * units_each / seconds;
}

void IndexBench::Report(absl::string_view what, absl::string_view unit,
                        double target, bool more_is_better,
                        const ContestedIndex& index, double value) {
  auto row = std::find_if(rows_.begin(), rows_.end(),
                          [&](const BenchRow& r) { return r.what == what; });
  if (row == rows_.end()) {
    rows_.push_back(
        {std::string(what), std::string(unit), target, more_is_better, {}});
    row = rows_.end() - 1;
  }
  row->of[index.name()] = value;
}

void IndexBench::Agree(const std::string& what, int64_t sum) {
  const auto [it, first] = answers_.emplace(what, sum);
  CHECK(it->second == sum) << what << ": " << sum << ", not " << it->second;
}

void IndexBench::Measure(const Maker& make) {
  const size_t heap = HeapBytes();
  const std::unique_ptr<ContestedIndex> index = make();
  index->AddWorkers(workload_.options().workers);
  Fill(*index);
  Report("memory for each distinct block", "bytes", 32, false, *index,
         static_cast<double>(HeapBytes() - heap) /
             static_cast<double>(index->blocks()));
  Lookups(*index);
  Decisions(*index);
  Churn(*index);
  HotLookups(*index);
  Deaths(*index);
}

void IndexBench::Fill(ContestedIndex& index) {
  const Instant start = clock_.Now();
  for (const IndexWorkload::Event& event : workload_.fill()) {
    index.Apply(event.worker, event.event);
  }
  const double seconds = Seconds(start);
  Report(
      "events, from empty", "blocks/s", 3e6, true, index,
      static_cast<double>(IndexWorkload::BlocksIn(workload_.fill())) / seconds);
}

void IndexBench::Lookups(ContestedIndex& index) {
  const auto& conversations = workload_.conversations();
  int64_t sum = 0;
  for (const auto& conversation : conversations) {
    sum += index.Deepest(conversation.chain);
  }
  Agree("lookups", sum);
  SeededRandom random(2);
  std::vector<size_t> order(conversations.size());
  for (size_t& next : order) next = random.Below(conversations.size());
  Report("lookups", "a second", 1e6, true, index, Rate(1, [&](size_t i) {
           sum += index.Deepest(conversations[order[i % order.size()]].chain);
         }));
}

void IndexBench::Decisions(ContestedIndex& index) {
  const size_t workers = workload_.options().workers;
  const size_t count = std::min(workload_.options().with_tokens,
                                workload_.conversations().size());
  SeededRandom random(3);
  std::vector<int> loads(workers), depths(workers);
  for (int& load : loads) load = static_cast<int>(random.Below(4000));
  auto decide = [&](size_t i) {
    const auto& conversation = workload_.conversations()[i % count];
    const std::vector<BlockHash> chain =
        workload_.hasher().Chain(workload_.root(), conversation.tokens);
    index.Depths(chain, absl::MakeSpan(depths));
    return ArgMin(loads, depths, static_cast<int>(chain.size()));
  };
  int64_t sum = 0;
  for (size_t i = 0; i < count; ++i) sum += static_cast<int64_t>(decide(i));
  Agree("decisions", sum);
  Report("hash, lookup and argmin", "a second", 250e3, true, index,
         Rate(1, [&](size_t i) { sum += static_cast<int64_t>(decide(i)); }));
  const auto& tokens = workload_.conversations()[0].tokens;
  Report("of that, hashing alone", "a second", 0, true, index,
         Rate(1, [&](size_t) {
           sum += static_cast<int64_t>(
               workload_.hasher().Chain(workload_.root(), tokens).size());
         }));
}

void IndexBench::Churn(ContestedIndex& index) {
  const std::vector<IndexWorkload::Event>& events = workload_.churn();
  const Instant start = clock_.Now();
  for (const IndexWorkload::Event& event : events) {
    index.Apply(event.worker, event.event);
  }
  const double seconds = Seconds(start);
  Report("events, evicting and storing", "blocks/s", 3e6, true, index,
         static_cast<double>(IndexWorkload::BlocksIn(events)) / seconds);
}

void IndexBench::HotLookups(ContestedIndex& index) {
  const size_t workers = workload_.options().workers;
  const std::vector<BlockHash> chain =
      HotChain(workload_.options().prompt_blocks);
  std::vector<uint64_t> sequences(workers);
  for (const auto* events : {&workload_.fill(), &workload_.churn()}) {
    for (const IndexWorkload::Event& event : *events) {
      sequences[event.worker] = event.event.sequence;
    }
  }
  for (size_t i = 0; i < workers; ++i) {
    index.Apply(static_cast<WorkerSlot>(i),
                {sequences[i] + 1, BlocksStored{BlockHash(), chain}});
  }
  int64_t sum = index.Deepest(chain);
  Agree("hot", sum);
  Report("lookup of a prefix that all own", "us", 1, false, index,
         1e6 / Rate(1, [&](size_t) { sum += index.Deepest(chain); }));
  std::vector<int> depths(workers);
  Report("the same, depths of all copied out", "us", 0, false, index,
         1e6 / Rate(1, [&](size_t) {
           index.Depths(chain, absl::MakeSpan(depths));
           sum += depths[0];
         }));
}

void IndexBench::Deaths(ContestedIndex& index) {
  double seconds = 0;
  int deaths = 0;
  for (const auto& conversation : workload_.conversations()) {
    const WorkerSlot owner = conversation.owners[0];
    if (index.DepthOf(owner, conversation.chain) == 0) continue;
    const Instant start = clock_.Now();
    index.Kill(owner);
    const int left = index.DepthOf(owner, conversation.chain);
    const double took = Seconds(start);
    CHECK(left == 0) << "a dead worker matches";
    seconds += took;
    if (++deaths == 100 || seconds > 2 * absl::ToDoubleSeconds(time_)) break;
  }
  Report("a worker's death until a lookup shows it", "us", 1, false, index,
         1e6 * seconds / deaths);
}

}  // namespace penstock
