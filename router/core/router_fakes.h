#pragma once

#include <algorithm>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "router/core/router_ports.h"
#include "router/core/router_probe.h"

namespace penstock {

// Workers' side of the router's legs, for tests: remembers what was asked.
// Ending a leg is the test's business.
class FakeLegs : public WorkerLegs {
 public:
  struct Leg {
    LegKind kind = LegKind::kDecode;
    WorkerKey worker;
    LegRequest request;
    int cancels = 0;
  };

  void Start(LegId leg, LegKind kind, const WorkerKey& worker,
             LegRequest request) override {
    EXPECT_NE(leg, 0u);
    EXPECT_TRUE(
        legs.emplace(leg, Leg{kind, worker, std::move(request), 0}).second);
  }
  void Cancel(LegId leg) override { ++legs.at(leg).cancels; }

  // The newest leg of its kind; 0 when there is none.
  LegId Last(LegKind kind) const {
    for (auto it = legs.rbegin(); it != legs.rend(); ++it) {
      if (it->second.kind == kind) return it->first;
    }
    return 0;
  }

  std::map<LegId, Leg> legs;
};

// A client that checks what every sink is promised.
class FakeClient : public ClientSink {
 public:
  void OnAdmitted(const PlacementSummary& summary) override {
    EXPECT_FALSE(ended);
    EXPECT_EQ(admissions++, 0);
    EXPECT_TRUE(ids.empty()) << "admitted after a token";
    placement = summary;
  }
  void OnMoved(const PlacementSummary& summary) override {
    EXPECT_FALSE(ended);
    EXPECT_EQ(admissions, 1);
    placement = summary;
  }
  void OnFrame(TokenFrame frame) override {
    EXPECT_FALSE(ended);
    EXPECT_EQ(admissions, 1);
    if (!frame.prompt.tokens.empty() && on_prompt) on_prompt(frame.prompt);
    int& next = next_[frame.sample];
    EXPECT_EQ(frame.tokens.empty() ? next : frame.first_index, next);
    next += static_cast<int>(frame.tokens.size());
    for (const FrameToken& token : frame.tokens) ids.push_back(token.id);
    if (on_frame) on_frame(frame);
    last = std::move(frame);
  }
  void OnFinished(const absl::Status& result) override {
    EXPECT_FALSE(ended) << "finished twice";
    ended = true;
    status = result;
  }

  std::function<void(const PromptLogprobs&)> on_prompt;
  std::function<void(const TokenFrame&)> on_frame;
  int admissions = 0;
  PlacementSummary placement;
  std::vector<TokenId> ids;
  TokenFrame last;
  bool ended = false;
  absl::Status status;

 private:
  std::map<int, int> next_;  // index of each sample's next token
};

// Remembers the verbs that tests ask about.
class FakeProbe : public NullRouterProbe {
 public:
  void RequestStarted(RequestId, int) override { ++started; }
  void RequestRejected(ErrorReason reason) override {
    rejected.push_back(reason);
  }
  void RequestPlaced(const PlacementFacts& facts) override {
    placements.push_back(facts);
  }
  void RequestRetried(RequestId, ErrorReason reason) override {
    retried.push_back(reason);
  }
  void DecisionJudged(const DecisionOutcome& outcome) override {
    judged.push_back(outcome);
  }
  void HitsPredicted(double wrong_share, bool alarm) override {
    hit_error = wrong_share;
    hit_alarm = alarm;
  }
  void FirstToken(RequestId, absl::Duration since_submit) override {
    first_tokens.push_back(since_submit);
  }
  void TokensDelivered(RequestId, int tokens, absl::Duration since) override {
    later_tokens += tokens;
    gaps.push_back(since);
  }
  void RequestFinished(const RequestOutcome& outcome) override {
    outcomes.push_back(outcome);
  }
  void InFlight(int running_now, int queued_now) override {
    running = running_now;
    queued = queued_now;
  }

  void WorkerVetoed(LegKind leg, const WorkerKey& worker, bool on) override {
    const std::string name =
        (leg == LegKind::kPrefill ? "prefill " : "decode ") + worker.name;
    if (on) {
      vetoed.push_back(name);
    } else {
      std::erase(vetoed, name);
    }
  }

  std::vector<std::string> vetoed;  // now
  int started = 0;
  std::vector<ErrorReason> rejected, retried;
  std::vector<PlacementFacts> placements;
  std::vector<DecisionOutcome> judged;
  double hit_error = 0;
  bool hit_alarm = false;
  std::vector<absl::Duration> first_tokens, gaps;
  int later_tokens = 0;
  std::vector<RequestOutcome> outcomes;
  int running = 0, queued = 0;
};

// Tokens whose ids are their indices.
inline TokenFrame FakeFrame(int first, int count,
                            FinishReason finish = FinishReason::kNone) {
  TokenFrame frame;
  frame.first_index = first;
  for (int i = 0; i < count; ++i) frame.tokens.push_back({first + i, "x", {}});
  frame.finish = finish;
  return frame;
}

}  // namespace penstock
