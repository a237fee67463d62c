// How fast a plain simulated cluster runs: events and requests in a second of
// one core's time, however busy the machine is.

#include <cstdio>
#include <ctime>
#include <functional>

#include "tools/simulator/sim_cluster.h"

namespace penstock {
namespace {

void Measure(bool log) {
  constexpr int kRequests = 4000;
  SimClusterOptions options;
  options.prefill_workers = 8;
  options.decode_workers = 8;
  options.worker.blocks = 512;
  options.worker.recount = false;
  options.router.max_queued = kRequests;
  options.router.max_queue_age = absl::InfiniteDuration();
  options.log = log;
  SimCluster cluster(options);
  int submitted = 0;
  std::function<void()> submit = [&] {
    cluster.Submit(200, 50);
    if (++submitted < kRequests) cluster.After(absl::Milliseconds(2), submit);
  };
  cluster.After(absl::ZeroDuration(), submit);
  const std::clock_t begin = std::clock();
  cluster.RunUntil([&] { return submitted == kRequests && cluster.Idle(); });
  const double took =
      static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
  std::printf(
      "%s log: %.0f events/s, %.0f requests/s (%lld events, %d requests of "
      "200 tokens and 50 more, %.1f simulated seconds)\n",
      log ? "with" : "without", static_cast<double>(cluster.events()) / took,
      kRequests / took, static_cast<long long>(cluster.events()), kRequests,
      absl::ToDoubleSeconds(cluster.now() - cluster.start()));
}

}  // namespace
}  // namespace penstock

int main() {
  penstock::Measure(true);
  penstock::Measure(false);
}
