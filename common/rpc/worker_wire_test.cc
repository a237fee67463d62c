#include "common/rpc/worker_wire.h"

#include <cmath>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "common/peer/error_reason.h"
#include "common/rpc/wire_check.h"
#include "common/rpc/wire_expectations.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "protos/worker.pb.h"

namespace penstock {
namespace {

using testing::ElementsAre;

std::vector<BlockHash> Hashes() { return {BlockHash(kBig), BlockHash(1)}; }

WorkerInfo ExampleInfo() {
  WorkerInfo info;
  info.key = {"decode-0", Incarnation(kBig)};
  info.roles = {false, true};
  info.control_address = "10.0.0.1:50052";
  info.model = "tiny";
  info.content = ContentId(kBig - 1);
  info.layout = LayoutId(kBig - 2);
  info.numerics = NumericsId(kBig - 3);
  info.context_length = 2048;
  info.total_blocks = 1456;
  info.max_sequences = 64;
  info.transports = {TransportKind::kShm, TransportKind::kTcp,
                     TransportKind::kInproc};
  return info;
}

TEST(WorkerWireTest, InfoKeepsEveryField) {
  const auto message = DecodeWorkerMessage(EncodeWorkerMessage(ExampleInfo()));
  ASSERT_TRUE(message.ok()) << message.status();
  const WorkerInfo& info = std::get<WorkerInfo>(*message);
  EXPECT_EQ(info.key, (WorkerKey{"decode-0", Incarnation(kBig)}));
  EXPECT_FALSE(info.roles.prefill);
  EXPECT_TRUE(info.roles.decode);
  EXPECT_EQ(info.control_address, "10.0.0.1:50052");
  EXPECT_EQ(info.model, "tiny");
  EXPECT_EQ(info.content, ContentId(kBig - 1));
  EXPECT_EQ(info.layout, LayoutId(kBig - 2));
  EXPECT_EQ(info.numerics, NumericsId(kBig - 3));
  EXPECT_EQ(info.context_length, 2048);
  EXPECT_EQ(info.total_blocks, 1456);
  EXPECT_EQ(info.max_sequences, 64);
  EXPECT_THAT(info.transports,
              ElementsAre(TransportKind::kShm, TransportKind::kTcp,
                          TransportKind::kInproc));
}

TEST(WorkerWireTest, InfoRefusesWhatCannotBe) {
  const std::string good = EncodeWorkerMessage(ExampleInfo());
  auto refused = [&](auto change) {
    return DecodeWorkerMessage(
               Changed<v1::WorkerMessage>(
                   good, [&](auto& p) { change(*p.mutable_info()); }))
        .status();
  };
  ExpectRefused(refused([](auto& p) { p.set_name(""); }), "info.name");
  ExpectRefused(refused([](auto& p) { p.set_incarnation(0); }),
                "info.incarnation");
  ExpectRefused(refused([](auto& p) { p.set_control_address(""); }),
                "info.control_address");
  ExpectRefused(refused([](auto& p) { p.set_total_blocks(0xffffffff); }),
                "info.total_blocks");
  ExpectRefused(refused([](auto& p) {
                  p.set_transports(0, static_cast<v1::TransportKind>(42));
                }),
                "info.transports");
  ExpectRefused(refused([](auto& p) {
                  p.add_transports(v1::TRANSPORT_KIND_UNSPECIFIED);
                }),
                "info.transports");
  EXPECT_EQ(refused([](auto& p) { p.mutable_protocol()->set_min(2); }).code(),
            absl::StatusCode::kFailedPrecondition);
}

TEST(WorkerWireTest, LoadRoundTripsInEveryHealth) {
  for (WorkerHealth health : {WorkerHealth::kLoading, WorkerHealth::kReady,
                              WorkerHealth::kDraining, WorkerHealth::kFailed}) {
    const WorkerLoad sent{health,
                          1,
                          2,
                          3,
                          4,
                          5,
                          absl::Microseconds(6),
                          {.step = 5e-3, .row = 7e-4, .pair = 1e-11}};
    const auto message = DecodeWorkerMessage(EncodeWorkerMessage(sent));
    ASSERT_TRUE(message.ok()) << message.status();
    const WorkerLoad& load = std::get<WorkerLoad>(*message);
    EXPECT_EQ(load.health, health);
    EXPECT_EQ(load.queued_requests, 1);
    EXPECT_EQ(load.active_requests, 2);
    EXPECT_EQ(load.queued_tokens, 3);
    EXPECT_EQ(load.free_blocks, 4);
    EXPECT_EQ(load.total_blocks, 5);
    EXPECT_EQ(load.step_time, absl::Microseconds(6));
    EXPECT_EQ(load.costs, sent.costs);
  }
  const std::string unspecified = Changed<v1::WorkerMessage>(
      EncodeWorkerMessage(WorkerLoad{}), [](auto& p) {
        p.mutable_load()->set_health(v1::WORKER_HEALTH_UNSPECIFIED);
      });
  ExpectRefused(DecodeWorkerMessage(unspecified).status(), "load.health");
}

TEST(WorkerWireTest, LoadRefusesCostsThatNoStepHas) {
  const std::string good = EncodeWorkerMessage(WorkerLoad{});
  for (double seconds :
       {-1e-9, 3601.0, double{INFINITY}, -double{INFINITY}, double{NAN}}) {
    auto refused = [&](auto change) {
      return DecodeWorkerMessage(Changed<v1::WorkerMessage>(
                                     good,
                                     [&](auto& p) {
                                       change(
                                           *p.mutable_load()->mutable_costs());
                                     }))
          .status();
    };
    ExpectRefused(refused([&](auto& c) { c.set_step(seconds); }),
                  "load.costs.step");
    ExpectRefused(refused([&](auto& c) { c.set_row(seconds); }),
                  "load.costs.row");
    ExpectRefused(refused([&](auto& c) { c.set_pair(seconds); }),
                  "load.costs.pair");
    ExpectRefused(refused([&](auto& c) { c.set_sample(seconds); }),
                  "load.costs.sample");
  }
}

TEST(WorkerWireTest, CacheEventsAndSnapshotRoundTrip) {
  const CacheEvents sent = {{7, BlocksStored{BlockHash(kBig), Hashes()}},
                            {8, BlocksRemoved{Hashes()}},
                            {9, CacheCleared{}}};
  const auto message = DecodeWorkerMessage(EncodeWorkerMessage(sent));
  ASSERT_TRUE(message.ok()) << message.status();
  const CacheEvents& events = std::get<CacheEvents>(*message);
  ASSERT_EQ(events.size(), 3u);
  EXPECT_EQ(events[0].sequence, 7u);
  EXPECT_EQ(std::get<BlocksStored>(events[0].change).parent, BlockHash(kBig));
  EXPECT_EQ(std::get<BlocksStored>(events[0].change).hashes, Hashes());
  EXPECT_EQ(std::get<BlocksRemoved>(events[1].change).hashes, Hashes());
  EXPECT_TRUE(std::holds_alternative<CacheCleared>(events[2].change));

  const CacheSnapshot all{9, {{BlockHash(), Hashes()}}};
  const auto again = DecodeWorkerMessage(EncodeWorkerMessage(all));
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(std::get<CacheSnapshot>(*again).sequence, 9u);
  EXPECT_EQ(std::get<CacheSnapshot>(*again).chains[0].hashes, Hashes());

  auto refused = [&](auto change) {
    return DecodeWorkerMessage(
               Changed<v1::WorkerMessage>(
                   EncodeWorkerMessage(sent),
                   [&](auto& p) {
                     change(*p.mutable_events()->mutable_events(0));
                   }))
        .status();
  };
  ExpectRefused(refused([](auto& p) { p.set_sequence(0); }), "events.sequence");
  ExpectRefused(refused([](auto& p) { p.clear_change(); }), "events.change");
  ExpectRefused(DecodeWorkerMessage("").status(), "message");
}

TEST(WorkerWireTest, RouterMessagesRoundTrip) {
  EXPECT_TRUE(std::holds_alternative<Welcome>(
      *DecodeRouterMessage(EncodeRouterMessage(Welcome{}))));
  EXPECT_EQ(std::get<CacheAck>(
                *DecodeRouterMessage(EncodeRouterMessage(CacheAck{kBig})))
                .sequence,
            kBig);
  EXPECT_EQ(std::get<CacheReplay>(
                *DecodeRouterMessage(EncodeRouterMessage(CacheReplay{5})))
                .from_sequence,
            5u);
  ExpectRefused(DecodeRouterMessage("").status(), "message");
}

}  // namespace
}  // namespace penstock
