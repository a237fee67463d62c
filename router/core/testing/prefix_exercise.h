#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "common/base/id.h"
#include "common/env/clock.h"
#include "common/env/random.h"
#include "common/peer/worker_report.h"
#include "router/core/prefix_index.h"
#include "router/core/testing/prefix_forest.h"
#include "router/core/testing/prefix_oracle.h"

namespace penstock {

// Random operations on a prefix index and on the oracle, which must agree;
// aborts, with the seed, where they do not. Each thousands of operations begin
// anew with others of everything: prefixes, workers, memory. When memory is
// short, the index may know less than the oracle, never more.
class PrefixExercise {
 public:
  explicit PrefixExercise(uint64_t seed);

  // One operation, and the matches of one chain after most. What happened.
  std::string Next();

  // All that Next can say.
  static std::vector<std::string> Outcomes();

 private:
  static constexpr int kEpisode = 20000;

  void StartEpisode();
  std::string Operate();
  std::string AddWorker();
  std::string Apply(WorkerSlot slot);
  std::string Replace(WorkerSlot slot);
  std::string Predict(WorkerSlot slot);
  std::string Withdraw(WorkerSlot slot);
  // An event of this worker that is probably right.
  CacheEvent RandomEvent(WorkerSlot slot);
  BlocksRemoved RandomRemoval(WorkerSlot slot);
  WorkerSlot RandomWorker();
  void Compare();
  void CompareDump(WorkerSlot slot);

  SeededRandom random_;
  uint64_t episodes_ = 0;
  int left_ = 0;  // of this episode's operations
  bool short_of_memory_ = false;
  size_t most_workers_ = 0;
  int compare_every_ = 1;
  ManualClock clock_;
  PrefixIndex::Options options_;
  std::unique_ptr<PrefixForest> forest_;
  std::unique_ptr<PrefixIndex> index_;
  std::unique_ptr<PrefixOracle> oracle_;
};

}  // namespace penstock
