#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/peer/error_reason.h"
#include "gtest/gtest.h"
#include "router/core/policy/placement_policy.h"
#include "router/core/router_core.h"
#include "router/core/router_fakes.h"

namespace penstock {

// A router core between fake legs, one fake client and a manual clock. After
// each test every leg ends, and nothing may be left over.
class RouterCoreTest : public ::testing::Test {
 protected:
  RouterCoreTest()
      : random_(1),
        hasher_(HashSecret("key")),
        policy_({.local_prefill_tokens = 16, .kv_bytes_per_token = 1000},
                *CostModel::Create({})) {
    options_.workers.content = ContentId(7);
  }

  void MakeCore() {
    core_ = *RouterCore::Create(
        options_,
        {&clock_, &timers_, &random_, &hasher_, &policy_, &legs_, &probe_});
  }
  void Add(const std::string& name, bool prefill, bool decode,
           uint64_t incarnation = 1) {
    WorkerInfo info;
    info.key = {name, Incarnation(incarnation)};
    info.roles = {prefill, decode};
    info.control_address = absl::StrCat(name, ":1");
    info.content = ContentId(7);
    info.total_blocks = 10000;
    info.max_sequences = 1000;
    info.transports = {TransportKind::kTcp};
    ASSERT_TRUE(core_->OnRegister(info).ok());
    Beat(info.key, WorkerHealth::kReady);
  }
  void Beat(const WorkerKey& worker, WorkerHealth health) {
    WorkerLoad load;
    load.health = health;
    load.total_blocks = load.free_blocks = 10000;
    ASSERT_TRUE(core_->OnLoad(worker, load).ok());
  }
  // One prefill and one decode worker, "p1" and "d1", and so on.
  void Cluster(int prefills, int decodes) {
    MakeCore();
    for (int i = 1; i <= prefills; ++i) Add(absl::StrCat("p", i), true, false);
    for (int i = 1; i <= decodes; ++i) Add(absl::StrCat("d", i), false, true);
  }
  static GenerateRequest Request(int prompt = 100) {
    GenerateRequest request;
    request.prompt.assign(prompt, 5);
    return request;
  }
  RequestId Submit(GenerateRequest request = Request()) {
    auto id = core_->Submit(std::move(request), &client_);
    EXPECT_TRUE(id.ok()) << id.status();
    TakeLastLegs();
    return id.value_or(RequestId());
  }
  void Accept() {
    core_->OnLegAccepted(d_);
    core_->OnLegAccepted(p_);
  }
  // A handoff that has given `tokens` tokens, and whose prefill has ended.
  void Stream(int tokens, GenerateRequest request = Request()) {
    Submit(std::move(request));
    Accept();
    core_->OnLegFrame(p_, FakeFrame(0, 1));
    core_->OnLegFinished(p_, absl::OkStatus());
    if (tokens > 1) core_->OnLegFrame(d_, FakeFrame(1, tokens - 1));
  }
  static absl::Status Kept(ErrorReason reason, int tokens) {
    return WithKeptTokens(MakeError(reason, "because"), tokens);
  }
  void Pass(absl::Duration time) {
    clock_.Advance(time);
    timers_.RunDue(clock_.Now());
  }
  const FakeLegs::Leg& Leg(LegId id) { return legs_.legs.at(id); }
  // The newest legs are those meant from now on.
  void TakeLastLegs() {
    p_ = legs_.Last(LegKind::kPrefill);
    d_ = legs_.Last(LegKind::kDecode);
  }
  ErrorReason Reason() const { return ErrorInfoOf(client_.status).reason; }

  // After each test: what is left ends, and nothing is left over.
  void TearDown() override {
    if (core_ == nullptr) return;
    for (int round = 0; round < 9 && !core_->idle(); ++round) {
      const std::map<LegId, FakeLegs::Leg> legs = legs_.legs;
      for (const auto& [id, leg] : legs) {
        core_->OnLegFinished(id, absl::CancelledError("gone"));
      }
      Pass(options_.max_timeout);
    }
    EXPECT_TRUE(core_->CheckAccounting().ok()) << core_->CheckAccounting();
    EXPECT_EQ(core_->running(), 0);
    EXPECT_TRUE(core_->idle());
    EXPECT_EQ(core_->workers().reservations(), 0);
    EXPECT_EQ(probe_.started, static_cast<int>(probe_.outcomes.size()));
    EXPECT_EQ(probe_.running, 0);
    EXPECT_EQ(probe_.queued, 0);
    // Only the workers' silence is watched still.
    EXPECT_EQ(timers_.size(), core_->workers().view().workers.size());
  }

  // Submits for a client of its own; null: it was refused.
  FakeClient* Ask(const GenerateRequest& request) {
    clients_.push_back(std::make_unique<FakeClient>());
    auto id = core_->Submit(request, clients_.back().get());
    refusal_ = id.status();
    return id.ok() ? clients_.back().get() : nullptr;
  }

  ManualClock clock_;
  Timers timers_;
  SeededRandom random_;
  BlockHasher hasher_;
  PlacementPolicy policy_;
  FakeLegs legs_;
  FakeProbe probe_;
  RouterCore::Options options_;
  std::unique_ptr<RouterCore> core_;
  FakeClient client_;
  std::vector<std::unique_ptr<FakeClient>> clients_;  // of Ask
  absl::Status refusal_;                              // Ask's last
  LegId p_ = 0, d_ = 0;
};

}  // namespace penstock
