#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "common/env/clock.h"
#include "common/env/random.h"
#include "common/env/timers.h"
#include "router/core/testing/feed_worker.h"
#include "router/core/testing/prefix_forest.h"
#include "router/core/worker_registry.h"

namespace penstock {

// Workers' event streams into a registry, with events that were never sent, are
// sent twice, are too old to be sent again, streams that break, processes that
// restart, and one worker whose hashes stand for no prefixes. Whenever all has
// arrived, the index has to hold exactly what each honest worker has cached;
// aborts, with the seed, where it does not.
class FeedExercise {
 public:
  explicit FeedExercise(uint64_t seed);

  // One thing that happens. What it was.
  std::string Next();

  // All that Next can say.
  static std::vector<std::string> Outcomes();

 private:
  std::string ChangeCache(FeedWorker& worker);
  std::string Deliver(FeedWorker& worker);
  std::string Restart(FeedWorker& worker);
  std::string BeHostile();
  BlockHash HostileHash() { return BlockHash(random_.Below(12)); }
  void Register(const WorkerKey& key);
  // Everything arrives; then both ends agree.
  std::string Settle();

  SeededRandom random_;
  ManualClock clock_;
  Timers timers_;
  PrefixForest forest_;
  WorkerRegistry registry_;
  std::vector<FeedWorker> workers_;
  const WorkerKey hostile_ = {"hostile", Incarnation(1)};
  uint64_t steps_ = 0;
};

}  // namespace penstock
