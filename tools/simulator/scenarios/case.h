#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "common/peer/error_reason.h"
#include "common/peer/leg.h"
#include "router/core/router_probe.h"
#include "tools/simulator/scenario.h"
#include "tools/simulator/sim_cluster.h"

namespace penstock {

// What the router told about placements and retries.
struct CaseProbe : NullRouterProbe {
  void RequestPlaced(const PlacementFacts& placement) override;
  void RequestRetried(RequestId request, ErrorReason reason) override;

  std::vector<PlacementFacts> placements;
  std::map<RequestId, int> retried;  // how often
  int retries = 0;
};

// Both legs of a request that were started by hand: no router cancels one when
// the other ends, or tries again.
struct LegPair {
  struct Leg : LegSink {
    void OnAccepted() override {}
    void OnFrame(TokenFrame frame) override {
      tokens += frame.tokens.size();
      for (const FrameToken& token : frame.tokens) ids.push_back(token.id);
    }
    void OnFinished(const absl::Status& status) override { ended = status; }
    size_t tokens = 0;
    std::vector<TokenId> ids;
    std::optional<absl::Status> ended;
  };
  Leg prefill, decode;

  bool ended() const { return prefill.ended && decode.ended; }
  // Decode's leg ended so.
  bool EndedWith(ErrorReason why) const;
};

// Who serves one.
struct LegPairing {
  std::string prefill = "prefill0";
  std::string decode = "decode0";
};

// The run of one scenario: a simulated cluster, driven and watched, and what
// was measured against what it has to be. The first value that is wrong is the
// failure. Owned by the scenario's function; single-threaded.
class Case {
 public:
  using Change = std::function<void(GenerateRequest&)>;

  explicit Case(SimClusterOptions options);

  SimCluster& cluster() { return cluster_; }
  SimWorker& worker(const std::string& name);
  // Does something to it from outside, as an event of its process.
  void On(const std::string& name,
          const std::function<void(WorkerCore&)>& what);
  BlockCounts Blocks(const std::string& name);
  // In use by requests and transfers, or quarantined.
  int HeldBlocks(const std::string& name);
  const CaseProbe& probe() const { return probe_; }

  // As SimCluster::Submit, but a refusal is a failure: never null.
  SimClient* Submit(int prompt, int max_tokens, const Change& change = {});
  const std::vector<SimClient*>& clients() const { return clients_; }
  // Starts a pair on the workers of `on`; `request` needs an id and a prompt.
  // The pair lives as long as the case. A later attempt goes on after what was
  // delivered of the one answer.
  LegPair* StartPair(GenerateRequest request, uint64_t attempt = 1,
                     const std::vector<TokenId>& delivered = {},
                     const LegPairing& on = {});
  int Finished() const;                        // ended well
  int EndedWith(ErrorReason why) const;        // ended so
  int LogLines(absl::string_view text) const;  // that hold it

  // Runs after every event, from now on.
  void Watch(std::function<void()> watch) { watch_ = std::move(watch); }
  // Time since the case began.
  absl::Duration Elapsed() const;
  void RunFor(absl::Duration time);
  // False, and a failure that names `what`: not within `limit`.
  bool RunUntil(absl::string_view what, const std::function<bool()>& done,
                absl::Duration limit = absl::Minutes(5));
  // Every request of this case has ended and all cores are idle.
  bool RunUntilIdle(absl::Duration limit = absl::Minutes(5));

  void Equal(absl::string_view what, int64_t got, int64_t want);
  void AtMost(absl::string_view what, int64_t got, int64_t bound);
  void AtLeast(absl::string_view what, int64_t got, int64_t bound);
  void AtMost(absl::string_view what, absl::Duration got, absl::Duration bound);
  // A failure unless `holds`.
  void True(absl::string_view what, bool holds);

  // Besides what was measured: every token is true, nothing leaks and the
  // router's accounts balance.
  ScenarioResult Finish();

 private:
  static SimClusterOptions Listening(SimClusterOptions options,
                                     CaseProbe* probe);
  void Measured(absl::string_view what, const std::string& got,
                const std::string& want, bool holds);

  CaseProbe probe_;
  std::vector<std::unique_ptr<LegPair>> pairs_;
  SimCluster cluster_;
  Instant begin_;
  std::vector<SimClient*> clients_;
  std::function<void()> watch_;
  ScenarioResult result_;
};

// Pages are written by remote access: what is under way lands, whatever the
// receiver has become meanwhile, unless it was fenced.
SimTransportOptions RemoteAccess();

// A cluster of so many workers, with the seed of a run.
SimClusterOptions CaseOptions(uint64_t seed, int prefill_workers,
                              int decode_workers);

}  // namespace penstock
