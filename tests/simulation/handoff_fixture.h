#pragma once

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/peer/error_reason.h"
#include "gtest/gtest.h"
#include "tools/simulator/sim_worker.h"

namespace penstock {

// What one leg gave.
struct RecordedLeg : LegSink {
  void OnAccepted() override { accepted = true; }
  void OnFrame(TokenFrame frame) override {
    EXPECT_FALSE(ended.has_value());
    if (const PromptLogprobs& part = frame.prompt; !part.tokens.empty()) {
      EXPECT_EQ(part.first_index, static_cast<int>(prompt.size()) + 1);
      prompt.insert(prompt.end(), part.tokens.begin(), part.tokens.end());
      return;
    }
    if (first_index < 0) first_index = frame.first_index;
    std::vector<TokenId>& sample = samples[frame.sample];
    if (sample.empty()) first_indices[frame.sample] = frame.first_index;
    EXPECT_EQ(frame.first_index + 0u,
              first_indices[frame.sample] + sample.size());
    for (const FrameToken& token : frame.tokens) {
      sample.push_back(token.id);
      logprobs[frame.sample].push_back(token.logprobs);
      text += token.text;
    }
    tokens = samples[0];
    text += frame.final_text;
    if (frame.finish != FinishReason::kNone) {
      finish[frame.sample] = frame.finish;
      last = frame;
    }
  }
  void OnFinished(const absl::Status& status) override {
    EXPECT_FALSE(ended.has_value());
    ended = status;
  }
  bool accepted = false;
  int first_index = -1;              // of the first frame
  std::map<int, int> first_indices;  // by sample
  std::vector<TokenId> tokens;       // of sample 0
  std::map<int, std::vector<TokenId>> samples;
  std::map<int, std::vector<TokenLogprobs>> logprobs;
  std::map<int, FinishReason> finish;
  std::vector<TokenLogprobs> prompt;  // from the second token on
  std::string text;
  std::optional<TokenFrame> last;
  std::optional<absl::Status> ended;
};

// A prefill worker and a decode worker on a simulated network, and whatever
// others a test makes.
class HandoffFixture : public testing::Test {
 protected:
  using Leg = RecordedLeg;

  void SetUp() override { Start({}); }

  void Start(SimWorkerOptions options) {
    prefill_.reset();
    decode_.reset();
    prefill_ = Make("p", 1, {true, false}, options);
    decode_ = Make("d", 2, {false, true}, options);
  }

  std::unique_ptr<SimWorker> Make(std::string name, uint64_t incarnation,
                                  WorkerRoles roles, SimWorkerOptions options) {
    options.key = {name, Incarnation(incarnation)};
    options.roles = roles;
    return std::make_unique<SimWorker>(options, &network_, &clock_, &timers_,
                                       &hasher_, &tokenizer_);
  }

  GenerateRequest Request(uint64_t id, int prompt, int max_tokens) {
    GenerateRequest request;
    request.id = RequestId(id);
    for (int i = 0; i < prompt; ++i) {
      request.prompt.push_back(1 + (i * 7 + id * 13) % 900);
    }
    request.stop.max_tokens = max_tokens;
    request.sampling.seed = id;
    return request;
  }

  LegRequest LegFor(const GenerateRequest& request, const SimWorker& worker,
                    std::string partner) {
    LegRequest leg;
    leg.request = request;
    leg.attempt = AttemptId(1);
    leg.partner = {partner, partner};
    leg.worker_incarnation = worker.key().incarnation;
    return leg;
  }

  // Starts both legs of a handed-off request.
  void StartPair(const GenerateRequest& request, Leg& p, Leg& d) {
    StartPair(request, *prefill_, *decode_, 1, {}, p, d);
  }

  // The same for any attempt at it, which goes on after `delivered`.
  void StartPair(const GenerateRequest& request, SimWorker& prefill,
                 SimWorker& decode, uint64_t attempt,
                 std::vector<TokenId> delivered, Leg& p, Leg& d) {
    LegRequest to_prefill = LegFor(request, prefill, decode.key().name);
    to_prefill.attempt = AttemptId(attempt);
    to_prefill.delivered = Delivered({std::move(delivered)});
    LegRequest to_decode = to_prefill;
    to_decode.partner = {prefill.key().name, prefill.key().name};
    to_decode.worker_incarnation = decode.key().incarnation;
    prefill.core().StartLeg(LegKind::kPrefill, std::move(to_prefill), &p);
    decode.core().StartLeg(LegKind::kDecode, std::move(to_decode), &d);
    prefill.Settle();
    decode.Settle();
  }

  // Starts a decode leg that computes everything itself.
  void StartAlone(const GenerateRequest& request, SimWorker& decode,
                  uint64_t attempt, std::vector<std::vector<TokenId>> delivered,
                  Leg& d) {
    LegRequest leg = LegFor(request, decode, "");
    leg.attempt = AttemptId(attempt);
    leg.delivered = Delivered(delivered);
    decode.core().StartLeg(LegKind::kDecode, std::move(leg), &d);
    decode.Settle();
  }

  static std::vector<std::vector<DeliveredToken>> Delivered(
      const std::vector<std::vector<TokenId>>& answers) {
    std::vector<std::vector<DeliveredToken>> delivered;
    for (const std::vector<TokenId>& answer : answers) {
      delivered.emplace_back();
      for (TokenId token : answer) delivered.back().push_back({token, 0});
    }
    return delivered;
  }

  // Leading and other tokens of a list.
  static std::vector<TokenId> First(const std::vector<TokenId>& all, int n) {
    return {all.begin(), all.begin() + n};
  }
  static std::vector<TokenId> After(const std::vector<TokenId>& all, int n) {
    return {all.begin() + n, all.end()};
  }

  template <typename Condition>
  bool RunUntil(Condition condition, absl::Duration limit = absl::Seconds(60)) {
    Instant end = clock_.Now() + limit;
    while (!condition()) {
      Instant next = timers_.NextDeadline();
      if (next > end) return false;
      clock_.AdvanceTo(std::max(next, clock_.Now()));
      timers_.RunDue(clock_.Now());
      for (auto* worker : {&prefill_, &decode_, &other_}) {
        if (*worker != nullptr) (*worker)->Settle();
      }
    }
    return true;
  }

  void ExpectClean(SimWorker& worker) {
    EXPECT_TRUE(RunUntil(
        [&] { return worker.core().idle() && !worker.core().keeps(); }));
    BlockCounts counts = worker.core().pool().counts();
    EXPECT_EQ(counts.active + counts.in_transfer + counts.quarantined, 0)
        << worker.key().name;
    EXPECT_EQ(counts.free + counts.cached, worker.core().pool().total());
  }

  ManualClock clock_;
  Timers timers_;
  HashSecret secret_{"simulation"};
  BlockHasher hasher_{secret_};
  SimTokenizer tokenizer_;
  SimNetwork network_{&clock_, &timers_, &hasher_, SimModel::Layout(),
                      absl::Milliseconds(1)};
  std::unique_ptr<SimWorker> prefill_;
  std::unique_ptr<SimWorker> decode_;
  std::unique_ptr<SimWorker> other_;  // a test's own
};

}  // namespace penstock
