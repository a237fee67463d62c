#include "common/worker/core/worker_core.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "common/peer/error_reason.h"
#include "gtest/gtest.h"
#include "tests/simulation/handoff_fixture.h"

namespace penstock {
namespace {

// What a worker takes, refuses and says of itself.
class WorkerCoreTest : public HandoffFixture {
 protected:
  // How a leg ends that is not taken; OK for one that is.
  absl::Status Refusal(SimWorker& worker, LegKind kind, LegRequest leg) {
    Leg sink;
    const TransferId transfer = leg.transfer();
    worker.core().StartLeg(kind, std::move(leg), &sink);
    EXPECT_NE(sink.accepted, sink.ended.has_value());
    if (sink.ended.has_value()) return *sink.ended;
    worker.core().CancelLeg(kind, transfer);
    worker.Settle();
    return absl::OkStatus();
  }
};

TEST_F(WorkerCoreTest, AWorkerNeedsARoleAndABlock) {
  auto created = [&](WorkerRoles roles, int blocks) {
    WorkerCoreOptions options;
    options.self = {"w", Incarnation(1)};
    options.roles = roles;
    options.total_blocks = blocks;
    WorkerCorePorts ports;
    ports.backend = &prefill_->backend();
    ports.hasher = &hasher_;
    ports.tokenizer = &tokenizer_;
    ports.clock = &clock_;
    ports.timers = &timers_;
    return WorkerCore::Create(options, ports).status().code();
  };
  constexpr auto kRefused = absl::StatusCode::kInvalidArgument;
  EXPECT_EQ(created({false, false}, 1), kRefused);
  EXPECT_EQ(created({true, false}, 0), kRefused);
  EXPECT_EQ(created({true, false}, 1), absl::StatusCode::kOk);
  EXPECT_EQ(created({false, true}, 1), absl::StatusCode::kOk);
}

TEST_F(WorkerCoreTest, ALegOfAnEarlierLifeIsLost) {
  LegRequest leg = LegFor(Request(1, 10, 5), *decode_, "");
  leg.worker_incarnation = Incarnation(1);
  absl::Status status = Refusal(*decode_, LegKind::kDecode, leg);
  EXPECT_EQ(ErrorInfoOf(status).reason, ErrorReason::kWorkerLost) << status;
  EXPECT_TRUE(decode_->core().idle());
}

TEST_F(WorkerCoreTest, WhatAsksForTheOtherRoleIsRefused) {
  absl::Status status = Refusal(*decode_, LegKind::kPrefill,
                                LegFor(Request(1, 10, 5), *decode_, "x"));
  EXPECT_EQ(ErrorInfoOf(status).reason, ErrorReason::kTransferFailed) << status;
  status = Refusal(*prefill_, LegKind::kDecode,
                   LegFor(Request(1, 10, 5), *prefill_, ""));
  EXPECT_EQ(ErrorInfoOf(status).reason, ErrorReason::kIncompatibleWorker)
      << status;
}

TEST_F(WorkerCoreTest, ADrainingWorkerRefusesAndSaysWhenToComeBack) {
  decode_->core().BeginDrain();
  EXPECT_EQ(decode_->core().Load().health, WorkerHealth::kDraining);
  absl::Status status = Refusal(*decode_, LegKind::kDecode,
                                LegFor(Request(1, 10, 5), *decode_, ""));
  EXPECT_EQ(ErrorInfoOf(status).reason, ErrorReason::kDraining) << status;
  EXPECT_EQ(ErrorInfoOf(status).retry_after, absl::Seconds(1));
}

// The longest prompt leaves room for one token, and token ids end where the
// vocabulary does.
TEST_F(WorkerCoreTest, ARequestThatCannotBeServedIsRefused) {
  SimWorkerOptions options;
  options.context_length = 64;
  Start(options);
  auto refusal = [&](GenerateRequest request) {
    return Refusal(*decode_, LegKind::kDecode, LegFor(request, *decode_, ""))
        .code();
  };
  constexpr auto kRefused = absl::StatusCode::kInvalidArgument;
  EXPECT_EQ(refusal(Request(1, 0, 5)), kRefused);
  EXPECT_EQ(refusal(Request(1, 64, 1)), kRefused);
  EXPECT_EQ(refusal(Request(1, 63, 1)), absl::StatusCode::kOk);
  GenerateRequest request = Request(1, 10, 1);
  request.prompt[3] = SimModel::kVocabulary;
  EXPECT_EQ(refusal(request), kRefused);
  request.prompt[3] = SimModel::kVocabulary - 1;
  EXPECT_EQ(refusal(request), absl::StatusCode::kOk);
  LegRequest leg = LegFor(Request(1, 10, 5), *decode_, "");
  leg.delivered = Delivered({{1}, {2}});
  EXPECT_EQ(Refusal(*decode_, LegKind::kDecode, leg).code(), kRefused);
}

TEST_F(WorkerCoreTest, TellsRoutersWhatItIs) {
  SimWorkerOptions options;
  options.blocks = 24;
  options.context_length = 500;
  options.engine.max_sequences = 7;
  options.transports = {TransportKind::kInproc, TransportKind::kTcp,
                        TransportKind::kShm};
  options.transports[0].preference = 1;
  options.transports[1].preference = 3;
  options.transports[2].preference = 2;
  auto worker = Make("w", 5, {true, false}, options);
  WorkerInfo info = worker->core().Info();
  EXPECT_EQ(info.key, (WorkerKey{"w", Incarnation(5)}));
  EXPECT_TRUE(info.roles.prefill);
  EXPECT_FALSE(info.roles.decode);
  EXPECT_EQ(info.model, "simulated");
  EXPECT_EQ(info.content, ContentId(42));
  EXPECT_EQ(info.layout, SimModel::Layout().id());
  EXPECT_EQ(info.numerics, worker->backend().caps().numerics);
  EXPECT_EQ(info.context_length, 500);
  EXPECT_EQ(info.total_blocks, 24);
  EXPECT_EQ(info.max_sequences, 7);
  // The preferred one first.
  EXPECT_EQ(info.transports, (std::vector<TransportKind>{
                                 TransportKind::kTcp, TransportKind::kShm,
                                 TransportKind::kInproc}));
  options.handoff.allowed_transports = {TransportKind::kInproc,
                                        TransportKind::kShm};
  worker = Make("v", 6, {true, false}, options);
  EXPECT_EQ(worker->core().Info().transports,
            (std::vector<TransportKind>{TransportKind::kShm,
                                        TransportKind::kInproc}));
}

TEST_F(WorkerCoreTest, ReportsItsLoad) {
  SimWorkerOptions options;
  options.blocks = 24;
  options.engine.max_sequences = 1;
  options.engine.prefill_chunk = 32;
  Start(options);
  WorkerLoad load = decode_->core().Load();
  EXPECT_EQ(load.health, WorkerHealth::kReady);
  EXPECT_EQ(load.queued_requests, 0);
  EXPECT_EQ(load.active_requests, 0);
  EXPECT_EQ(load.queued_tokens, 0);
  EXPECT_EQ(load.free_blocks, 24);
  EXPECT_EQ(load.total_blocks, 24);
  EXPECT_EQ(load.step_time, absl::ZeroDuration());
  EXPECT_EQ(load.costs, StepCosts{});

  // A chunk of 32 tokens lies in 2 blocks; the second request waits.
  Leg one, two;
  StartAlone(Request(1, 100, 5), *decode_, 1, {}, one);
  StartAlone(Request(2, 50, 5), *decode_, 1, {}, two);
  load = decode_->core().Load();
  EXPECT_EQ(load.active_requests, 1);
  EXPECT_EQ(load.queued_requests, 1);
  EXPECT_EQ(load.queued_tokens, 100 + 50);
  EXPECT_EQ(load.free_blocks, 24 - 2);
  EXPECT_FALSE(decode_->core().idle());
  auto queued = [&] { return decode_->core().Load().queued_tokens; };
  ASSERT_TRUE(RunUntil([&] { return queued() != 150; }));
  EXPECT_EQ(queued(), 68 + 50);

  ASSERT_TRUE(RunUntil([&] { return one.ended && two.ended; }));
  load = decode_->core().Load();
  EXPECT_EQ(load.active_requests, 0);
  EXPECT_EQ(load.queued_requests, 0);
  EXPECT_EQ(load.queued_tokens, 0);
  // What is cached can be had, so it counts as free.
  EXPECT_EQ(load.free_blocks, 24);
  EXPECT_GT(decode_->core().pool().counts().cached, 0);
  // Each step took 2 ms and up to 32 times 20 us.
  EXPECT_GT(load.step_time, absl::Milliseconds(2));
  EXPECT_LE(load.step_time, absl::Microseconds(2640));
  EXPECT_NEAR(load.costs.step + 32 * load.costs.row, 2.64e-3, 0.5e-3);
  ExpectClean(*decode_);
}

// Transfers that wait for their other side are queued requests too.
TEST_F(WorkerCoreTest, LegsThatWaitForTheirPartnerAreQueued) {
  Leg p, d;
  LegRequest to_decode = LegFor(Request(1, 100, 5), *decode_, "p");
  decode_->core().StartLeg(LegKind::kDecode, to_decode, &d);
  decode_->Settle();
  EXPECT_EQ(decode_->core().Load().queued_requests, 1);
  EXPECT_FALSE(decode_->core().idle());
  LegRequest to_prefill = LegFor(Request(1, 100, 5), *prefill_, "d");
  prefill_->core().StartLeg(LegKind::kPrefill, to_prefill, &p);
  EXPECT_EQ(prefill_->core().Load().queued_requests, 1);
  EXPECT_FALSE(prefill_->core().idle());
  prefill_->core().CancelLeg(LegKind::kPrefill, to_prefill.transfer());
  decode_->core().CancelLeg(LegKind::kDecode, to_decode.transfer());
  ASSERT_TRUE(p.ended.has_value());
  ASSERT_TRUE(d.ended.has_value());
  EXPECT_EQ(ErrorInfoOf(*p.ended).reason, ErrorReason::kCancelled);
  EXPECT_EQ(ErrorInfoOf(*d.ended).reason, ErrorReason::kCancelled);
  ExpectClean(*prefill_);
  ExpectClean(*decode_);
  EXPECT_EQ(decode_->core().Load().queued_requests, 0);
  EXPECT_EQ(prefill_->core().Load().queued_requests, 0);
}

}  // namespace
}  // namespace penstock
