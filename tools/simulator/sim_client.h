#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "common/model/generate_request.h"
#include "router/core/router_ports.h"

namespace penstock {

// What the client of one request saw. Owned by the SimCluster, as long as that
// lives; single-threaded.
struct SimClient : ClientSink {
  void OnAdmitted(const PlacementSummary& placement) override;
  void OnFrame(TokenFrame frame) override;
  void OnFinished(const absl::Status& status) override;

  std::string router;  // that it asked
  GenerateRequest request;
  PlacementSummary placement;
  bool admitted = false;
  std::vector<TokenId> tokens;                         // of sample 0
  std::map<int, std::vector<TokenId>> samples;         // all
  std::map<int, std::string> texts;                    // shown so far
  std::map<int, std::vector<TokenLogprobs>> logprobs;  // if asked for
  std::map<int, FinishReason> finished;
  std::vector<TokenLogprobs> prompt;  // from the second token on
  AttemptId attempt;                  // that the last frame came from
  int64_t heard = 0;                  // calls
  std::optional<TokenFrame> last;
  std::optional<absl::Status> ended;
  // Set when something that must not happen did.
  std::string violation;
  std::function<void(const std::string&)> trace;
  std::function<void()> on_end = [] {};
};

}  // namespace penstock
