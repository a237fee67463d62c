#include <limits>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/peer/error_reason.h"
#include "common/rpc/handoff_wire.h"
#include "common/rpc/inference_wire.h"
#include "common/rpc/wire_check.h"
#include "common/rpc/worker_wire.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "protos/handoff.pb.h"
#include "protos/inference.pb.h"
#include "protos/worker.pb.h"

namespace penstock {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr uint64_t kBig = 0xfedc'ba98'7654'3210;

void ExpectRefused(const absl::Status& status, const std::string& field) {
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
  EXPECT_EQ(ErrorInfoOf(status).field, field) << status;
}

std::vector<BlockHash> Hashes() { return {BlockHash(kBig), BlockHash(1)}; }

// A message's bytes with one part of a proto changed.
template <typename Proto, typename Change>
std::string Changed(const std::string& bytes, Change change) {
  Proto proto;
  EXPECT_TRUE(proto.ParseFromString(bytes));
  change(proto);
  return proto.SerializeAsString();
}

LegRequest ExampleLeg() {
  LegRequest leg;
  GenerateRequest& request = leg.request;
  request.id = RequestId(kBig);
  request.client_request_id = "client-7";
  request.model = "tiny";
  request.prompt = {0, 5, 49151};
  request.sampling = {0.0f, 40, 0.9f, kBig, 0};
  request.stop = {7, {2, 3}, {"\n\n", "End"}, true};
  request.tenant = "t";
  request.cache_salt = "s";
  request.priority = -3;
  request.timeout = absl::Milliseconds(1500);
  leg.attempt = AttemptId(2);
  leg.partner = {"decode-0", "127.0.0.1:7"};
  leg.worker_incarnation = Incarnation(kBig - 1);
  return leg;
}

TEST(WorkerWireTest, LegRequestKeepsEveryField) {
  const auto leg = DecodeLegRequest(EncodeLegRequest(ExampleLeg()));
  ASSERT_TRUE(leg.ok()) << leg.status();
  const GenerateRequest& request = leg->request;
  EXPECT_EQ(request.id, RequestId(kBig));
  EXPECT_EQ(request.client_request_id, "client-7");
  EXPECT_EQ(request.model, "tiny");
  EXPECT_THAT(request.prompt, ElementsAre(0, 5, 49151));
  EXPECT_EQ(request.sampling.temperature, 0.0f);
  EXPECT_EQ(request.sampling.top_k, 40);
  EXPECT_EQ(request.sampling.top_p, 0.9f);
  EXPECT_EQ(request.sampling.seed, kBig);
  EXPECT_EQ(request.sampling.logprobs, 0);
  EXPECT_EQ(request.stop.max_tokens, 7);
  EXPECT_THAT(request.stop.stop_ids, ElementsAre(2, 3));
  EXPECT_THAT(request.stop.stop_strings, ElementsAre("\n\n", "End"));
  EXPECT_TRUE(request.stop.ignore_eos);
  EXPECT_EQ(request.tenant, "t");
  EXPECT_EQ(request.cache_salt, "s");
  EXPECT_EQ(request.priority, -3);
  EXPECT_EQ(request.timeout, absl::Milliseconds(1500));
  EXPECT_EQ(leg->attempt, AttemptId(2));
  EXPECT_EQ(leg->partner.worker, "decode-0");
  EXPECT_EQ(leg->partner.control, "127.0.0.1:7");
  EXPECT_EQ(leg->worker_incarnation, Incarnation(kBig - 1));
}

TEST(WorkerWireTest, LegRequestKeepsWhatIsAbsent) {
  LegRequest leg = ExampleLeg();
  leg.request.timeout = absl::InfiniteDuration();
  leg.request.sampling.logprobs = -1;
  leg.partner = {};
  const auto decoded = DecodeLegRequest(EncodeLegRequest(leg));
  ASSERT_TRUE(decoded.ok()) << decoded.status();
  EXPECT_EQ(decoded->request.timeout, absl::InfiniteDuration());
  EXPECT_EQ(decoded->request.sampling.logprobs, -1);
  EXPECT_EQ(decoded->partner.worker, "");
}

TEST(WorkerWireTest, LegRequestRefusesWhatCannotBe) {
  const std::string good = EncodeLegRequest(ExampleLeg());
  auto refused = [&](auto change) {
    return DecodeLegRequest(Changed<v1::LegRequest>(good, change)).status();
  };
  ExpectRefused(refused([](auto& p) { p.mutable_request()->set_id(0); }),
                "request.id");
  ExpectRefused(refused([](auto& p) { p.set_attempt(0); }), "attempt");
  ExpectRefused(
      refused([](auto& p) { p.mutable_request()->set_timeout_us(-1); }),
      "request.timeout_us");
  ExpectRefused(refused([](auto& p) {
                  p.mutable_request()->set_timeout_us(
                      std::numeric_limits<int64_t>::max());
                }),
                "request.timeout_us");
  ExpectRefused(refused([](auto& p) { p.mutable_partner()->set_worker(""); }),
                "partner.worker");
  ExpectRefused(refused([](auto& p) {
                  p.mutable_partner()->set_control(std::string(300, 'a'));
                }),
                "partner.control");
  const absl::Status future = refused([](auto& p) {
    p.mutable_protocol()->set_min(2);
    p.mutable_protocol()->set_max(3);
  });
  EXPECT_EQ(future.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(ErrorInfoOf(future).reason, ErrorReason::kIncompatibleWorker);
  EXPECT_EQ(refused([](auto& p) { p.clear_protocol(); }).code(),
            absl::StatusCode::kFailedPrecondition);
  // A range that reaches ours is welcome, and so are fields of the future.
  EXPECT_TRUE(refused([](auto& p) { p.mutable_protocol()->set_max(9); }).ok());
  std::string extended = good;
  extended += std::string("\xf8\x07\x01", 3);  // field 127, varint 1
  EXPECT_TRUE(DecodeLegRequest(extended).ok());
}

TokenFrame ExampleFrame() {
  TokenFrame frame;
  frame.attempt = AttemptId(3);
  frame.sample = 1;
  frame.first_index = 12;
  frame.tokens.push_back({5, "h\xc3\xa9", {-0.25f, {{5, -0.25f}, {0, -3}}}});
  frame.tokens.push_back({0, "", {}});
  frame.finish = FinishReason::kLength;
  frame.final_text = "rest";
  frame.usage = {26, 16, 14};
  frame.timings = {absl::Microseconds(1), absl::Microseconds(2),
                   absl::Microseconds(3), absl::Microseconds(4),
                   absl::Seconds(5)};
  frame.transfer = {"shm", kBig, 3, 4, 5};
  return frame;
}

TEST(WorkerWireTest, FrameKeepsEveryField) {
  const auto event = DecodeLegEvent(EncodeLegEvent(ExampleFrame()));
  ASSERT_TRUE(event.ok()) << event.status();
  const TokenFrame& frame = std::get<TokenFrame>(*event);
  EXPECT_EQ(frame.attempt, AttemptId(3));
  EXPECT_EQ(frame.sample, 1);
  EXPECT_EQ(frame.first_index, 12);
  ASSERT_EQ(frame.tokens.size(), 2u);
  EXPECT_EQ(frame.tokens[0].id, 5);
  EXPECT_EQ(frame.tokens[0].text, "h\xc3\xa9");
  EXPECT_EQ(frame.tokens[0].logprobs.logprob, -0.25f);
  EXPECT_THAT(frame.tokens[0].logprobs.top,
              ElementsAre(std::pair<TokenId, float>(5, -0.25f),
                          std::pair<TokenId, float>(0, -3.0f)));
  EXPECT_EQ(frame.tokens[1].id, 0);
  EXPECT_TRUE(frame.tokens[1].logprobs.top.empty());
  EXPECT_EQ(frame.finish, FinishReason::kLength);
  EXPECT_EQ(frame.final_text, "rest");
  EXPECT_EQ(frame.usage.prompt_tokens, 26);
  EXPECT_EQ(frame.usage.cached_tokens, 16);
  EXPECT_EQ(frame.usage.completion_tokens, 14);
  EXPECT_EQ(frame.timings.queue, absl::Microseconds(1));
  EXPECT_EQ(frame.timings.prefill, absl::Microseconds(2));
  EXPECT_EQ(frame.timings.transfer, absl::Microseconds(3));
  EXPECT_EQ(frame.timings.first_token, absl::Microseconds(4));
  EXPECT_EQ(frame.timings.decode, absl::Seconds(5));
  EXPECT_EQ(frame.transfer.transport, "shm");
  EXPECT_EQ(frame.transfer.bytes_moved, kBig);
  EXPECT_EQ(frame.transfer.blocks_moved, 3u);
  EXPECT_EQ(frame.transfer.blocks_shared, 4u);
  EXPECT_EQ(frame.transfer.decode_prompt_tokens, 5u);
}

TEST(WorkerWireTest, LegEventRefusesWhatCannotBe) {
  EXPECT_TRUE(std::holds_alternative<LegAccepted>(
      *DecodeLegEvent(EncodeLegEvent(LegAccepted{}))));
  const std::string good = EncodeLegEvent(ExampleFrame());
  auto refused = [&](auto change) {
    return DecodeLegEvent(Changed<v1::LegEvent>(good, change)).status();
  };
  ExpectRefused(
      refused([](auto& p) {
        p.mutable_frame()->set_finish(static_cast<v1::FinishReason>(99));
      }),
      "frame.finish");
  ExpectRefused(refused([](auto& p) {
                  p.mutable_frame()->set_first_index(kMaxWireCount + 1);
                }),
                "frame.first_index");
  ExpectRefused(refused([](auto& p) {
                  p.mutable_frame()->mutable_timings()->set_decode_us(-5);
                }),
                "timings.decode_us");
  ExpectRefused(refused([](auto& p) { p.Clear(); }), "event");
  ExpectRefused(DecodeLegEvent("\xff\xff\xff").status(),
                "penstock.v1.LegEvent");
}

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
    const WorkerLoad sent{health, 1, 2, 3, 4, 5, absl::Microseconds(6)};
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
  }
  const std::string unspecified = Changed<v1::WorkerMessage>(
      EncodeWorkerMessage(WorkerLoad{}), [](auto& p) {
        p.mutable_load()->set_health(v1::WORKER_HEALTH_UNSPECIFIED);
      });
  ExpectRefused(DecodeWorkerMessage(unspecified).status(), "load.health");
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

// Handoff. ----------------------------------------------------------------

constexpr TransferId kTransfer{RequestId(kBig), AttemptId(4)};

template <typename Message>
Message RoundTrip(const Message& message) {
  const auto frame =
      DecodeHandoffFrame(EncodeHandoffFrame({17, HandoffMessage(message)}));
  EXPECT_TRUE(frame.ok()) << frame.status();
  EXPECT_EQ(frame->sequence, 17u);
  const auto& decoded = std::get<HandoffMessage>(frame->body);
  EXPECT_EQ(TransferOf(decoded), kTransfer);
  return std::get<Message>(decoded);
}

TEST(HandoffWireTest, OfferCreditAndRejectKeepEveryField) {
  const Offer offer =
      RoundTrip(Offer{kTransfer,
                      LayoutId(1),
                      ContentId(2),
                      NumericsId(3),
                      300,
                      Hashes(),
                      {TransportKind::kTcp, TransportKind::kShm}});
  EXPECT_EQ(offer.layout, LayoutId(1));
  EXPECT_EQ(offer.content, ContentId(2));
  EXPECT_EQ(offer.numerics, NumericsId(3));
  EXPECT_EQ(offer.prompt_tokens, 300);
  EXPECT_EQ(offer.block_hashes, Hashes());
  EXPECT_THAT(offer.transports,
              ElementsAre(TransportKind::kTcp, TransportKind::kShm));

  const Credit credit =
      RoundTrip(Credit{kTransfer,
                       3,
                       {TransportKind::kShm, std::string("name\1", 5),
                        Incarnation(kBig), kBig - 1},
                       absl::Seconds(10)});
  EXPECT_EQ(credit.have_blocks, 3);
  EXPECT_EQ(credit.address.kind, TransportKind::kShm);
  EXPECT_EQ(credit.address.address, std::string("name\1", 5));
  EXPECT_EQ(credit.address.incarnation, Incarnation(kBig));
  EXPECT_EQ(credit.address.access_key, kBig - 1);
  EXPECT_EQ(credit.lease, absl::Seconds(10));

  const Reject reject =
      RoundTrip(Reject{kTransfer, absl::StatusCode::kFailedPrecondition,
                       "layout", absl::Milliseconds(20)});
  EXPECT_EQ(reject.code, absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(reject.message, "layout");
  EXPECT_EQ(reject.retry_after, absl::Milliseconds(20));
}

TEST(HandoffWireTest, GrantsAndChunksKeepEveryField) {
  const std::vector<BlockRef> blocks = {{0, 1}, {77, 0xffffffff}};
  const Grant grant = RoundTrip(Grant{kTransfer, 2, 16, blocks});
  EXPECT_EQ(grant.chunk, 2);
  EXPECT_EQ(grant.first_prompt_block, 16);
  EXPECT_EQ(grant.blocks, blocks);

  const ChunkDone done =
      RoundTrip(ChunkDone{kTransfer, 3, 18, {kBig, 0}, blocks});
  EXPECT_EQ(done.chunk, 3);
  EXPECT_EQ(done.first_prompt_block, 18);
  EXPECT_THAT(done.checksums, ElementsAre(kBig, 0));
  EXPECT_EQ(done.shared, blocks);

  const ChunkNack nack = RoundTrip(ChunkNack{kTransfer, 3, "stale"});
  EXPECT_EQ(nack.chunk, 3);
  EXPECT_EQ(nack.reason, "stale");
}

TEST(HandoffWireTest, CommitKeepsTheWholeManifest) {
  KvManifest sent;
  sent.layout = LayoutId(1);
  sent.content = ContentId(2);
  sent.numerics = NumericsId(3);
  sent.prompt_tokens = 300;
  sent.block_hashes = Hashes();
  sent.moved = {{4, kBig}, {5, 0}};
  sent.bytes_moved = kBig;
  sent.chunks = 2;
  sent.state = std::string("\0\xff state", 8);
  sent.timings.prefill = absl::Milliseconds(8);
  sent.cached_tokens = 16;
  const KvManifest manifest = RoundTrip(Commit{kTransfer, sent}).manifest;
  EXPECT_EQ(manifest.layout, sent.layout);
  EXPECT_EQ(manifest.content, sent.content);
  EXPECT_EQ(manifest.numerics, sent.numerics);
  EXPECT_EQ(manifest.prompt_tokens, 300);
  EXPECT_EQ(manifest.block_hashes, Hashes());
  ASSERT_EQ(manifest.moved.size(), 2u);
  EXPECT_EQ(manifest.moved[0].prompt_block, 4);
  EXPECT_EQ(manifest.moved[0].checksum, kBig);
  EXPECT_EQ(manifest.moved[1].prompt_block, 5);
  EXPECT_EQ(manifest.bytes_moved, kBig);
  EXPECT_EQ(manifest.chunks, 2);
  EXPECT_EQ(manifest.state, sent.state);
  EXPECT_EQ(manifest.timings.prefill, absl::Milliseconds(8));
  EXPECT_EQ(manifest.cached_tokens, 16);
}

TEST(HandoffWireTest, SmallMessagesAndHelloRoundTrip) {
  RoundTrip(CommitAck{kTransfer});
  RoundTrip(FenceAck{kTransfer});
  EXPECT_EQ(RoundTrip(Renew{kTransfer, absl::Seconds(3)}).lease,
            absl::Seconds(3));
  const Abort abort =
      RoundTrip(Abort{kTransfer, absl::StatusCode::kCancelled, "left"});
  EXPECT_EQ(abort.code, absl::StatusCode::kCancelled);
  EXPECT_EQ(abort.reason, "left");
  // The first token ended the request: an end without an error.
  EXPECT_EQ(RoundTrip(Abort{kTransfer, absl::StatusCode::kOk, ""}).code,
            absl::StatusCode::kOk);

  const WorkerKey worker{"prefill-0", Incarnation(kBig)};
  const auto frame =
      DecodeHandoffFrame(EncodeHandoffFrame({1, HandoffHello{worker}}));
  ASSERT_TRUE(frame.ok()) << frame.status();
  EXPECT_EQ(std::get<HandoffHello>(frame->body).worker, worker);
}

TEST(HandoffWireTest, RefusesWhatCannotBe) {
  auto refused = [](HandoffMessage message, auto change) {
    return DecodeHandoffFrame(
               Changed<v1::HandoffFrame>(
                   EncodeHandoffFrame({1, std::move(message)}), change))
        .status();
  };
  const Grant grant{kTransfer, 0, 0, {{1, 1}}};
  ExpectRefused(refused(grant, [](auto& p) { p.set_sequence(0); }), "sequence");
  ExpectRefused(refused(grant, [](auto& p) { p.set_request_id(0); }),
                "request_id");
  ExpectRefused(refused(grant, [](auto& p) { p.set_attempt(0); }),
                "request_id");
  ExpectRefused(refused(grant, [](auto& p) { p.clear_body(); }), "body");
  ExpectRefused(refused(grant,
                        [](auto& p) {
                          p.mutable_grant()->mutable_blocks(0)->set_index(-1);
                        }),
                "grant.blocks");
  ExpectRefused(
      refused(grant, [](auto& p) { p.mutable_grant()->set_chunk(0x80000000); }),
      "grant.chunk");
  ExpectRefused(refused(Reject{kTransfer, absl::StatusCode::kInternal, "", {}},
                        [](auto& p) {
                          p.mutable_reject()->mutable_status()->set_code(0);
                        }),
                "reject.status.code");
  ExpectRefused(refused(Abort{kTransfer, absl::StatusCode::kInternal, ""},
                        [](auto& p) {
                          p.mutable_abort()->mutable_status()->set_code(17);
                        }),
                "abort.status.code");
  ExpectRefused(refused(Credit{kTransfer, 0, {}, {}},
                        [](auto& p) { p.mutable_credit()->clear_address(); }),
                "credit.address.kind");
  ExpectRefused(refused(Renew{kTransfer, {}},
                        [](auto& p) { p.mutable_renew()->set_lease_us(-1); }),
                "renew.lease_us");
  ExpectRefused(DecodeHandoffFrame("nonsense").status(),
                "penstock.v1.HandoffFrame");
}

// Clients. ----------------------------------------------------------------

v1::GenerateRequest ExampleRequest() {
  v1::GenerateRequest proto;
  proto.set_text("hello");
  return proto;
}

absl::StatusOr<ClientRequest> Decode(const v1::GenerateRequest& proto) {
  return DecodeGenerateRequest(proto.SerializeAsString());
}

TEST(InferenceWireTest, AbsentFieldsHaveTheirDefaults) {
  const auto client = Decode(ExampleRequest());
  ASSERT_TRUE(client.ok()) << client.status();
  EXPECT_EQ(std::get<std::string>(client->prompt), "hello");
  EXPECT_FALSE(client->has_seed);
  EXPECT_EQ(client->request.sampling.temperature, 1.0f);
  EXPECT_EQ(client->request.sampling.top_k, 0);
  EXPECT_EQ(client->request.sampling.top_p, 1.0f);
  EXPECT_EQ(client->request.sampling.logprobs, -1);
  EXPECT_EQ(client->request.stop.max_tokens, 16);
  EXPECT_FALSE(client->request.stop.ignore_eos);
  EXPECT_EQ(client->request.timeout, absl::InfiniteDuration());
}

TEST(InferenceWireTest, ZeroIsAValueAndNotADefault) {
  v1::GenerateRequest proto = ExampleRequest();
  proto.mutable_sampling()->set_temperature(0);
  proto.mutable_sampling()->set_seed(0);
  proto.mutable_sampling()->set_logprobs(0);
  proto.mutable_stop()->set_max_tokens(0);
  const auto client = Decode(proto);
  ASSERT_TRUE(client.ok()) << client.status();
  EXPECT_EQ(client->request.sampling.temperature, 0.0f);
  EXPECT_TRUE(client->has_seed);
  EXPECT_EQ(client->request.sampling.logprobs, 0);
  EXPECT_EQ(client->request.stop.max_tokens, 0);
}

TEST(InferenceWireTest, PromptsComeAsTextMessagesOrIds) {
  v1::GenerateRequest proto = ExampleRequest();
  v1::ChatMessage* message = proto.mutable_messages()->add_messages();
  message->set_role("user");
  message->set_content("hi");
  proto.mutable_messages()->set_add_generation_prompt(false);
  auto client = Decode(proto);
  ASSERT_TRUE(client.ok()) << client.status();
  const ChatInput& chat = std::get<ChatInput>(client->prompt);
  EXPECT_EQ(chat.messages[0].role, "user");
  EXPECT_EQ(chat.messages[0].content, "hi");
  EXPECT_FALSE(chat.add_generation_prompt);

  proto.mutable_ids()->add_ids(0);
  proto.mutable_ids()->add_ids(-7);
  client = Decode(proto);
  ASSERT_TRUE(client.ok()) << client.status();
  EXPECT_THAT(std::get<std::vector<TokenId>>(client->prompt),
              ElementsAre(0, -7));
}

TEST(InferenceWireTest, AnEmptyPromptIsNamed) {
  auto reason = [](const v1::GenerateRequest& proto) {
    const ErrorInfo info = ErrorInfoOf(Decode(proto).status());
    EXPECT_EQ(info.reason, ErrorReason::kPromptEmpty);
    return info.field;
  };
  v1::GenerateRequest proto;
  EXPECT_EQ(reason(proto), "prompt");
  proto.set_text("");
  EXPECT_EQ(reason(proto), "text");
  proto.mutable_messages();
  EXPECT_EQ(reason(proto), "messages");
  proto.mutable_ids();
  EXPECT_EQ(reason(proto), "ids");
}

TEST(InferenceWireTest, WhatIsNotBuiltIsRefusedByName) {
  auto field = [](auto change) {
    v1::GenerateRequest proto = ExampleRequest();
    change(proto);
    const absl::Status status = Decode(proto).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kUnimplemented) << status;
    return ErrorInfoOf(status).field;
  };
  EXPECT_EQ(field([](auto& p) { p.set_n(2); }), "n");
  EXPECT_EQ(field([](auto& p) { p.set_return_ids(false); }), "return_ids");
  EXPECT_EQ(field([](auto& p) { p.set_prompt_logprobs(0); }),
            "prompt_logprobs");
  EXPECT_EQ(field([](auto& p) { p.set_adapter(""); }), "adapter");
  EXPECT_EQ(field([](auto& p) { p.set_session_id("s"); }), "session_id");
  EXPECT_EQ(field([](auto& p) { p.mutable_constraint(); }), "constraint");
  EXPECT_EQ(field([](auto& p) { p.mutable_sampling()->set_min_p(0); }),
            "sampling.min_p");
  EXPECT_EQ(
      field([](auto& p) { p.mutable_sampling()->set_repetition_penalty(1); }),
      "sampling.repetition_penalty");
  EXPECT_EQ(
      field([](auto& p) { p.mutable_sampling()->set_presence_penalty(0); }),
      "sampling.presence_penalty");
  EXPECT_EQ(
      field([](auto& p) { p.mutable_sampling()->set_frequency_penalty(0); }),
      "sampling.frequency_penalty");
  EXPECT_EQ(field([](auto& p) {
              (*p.mutable_sampling()->mutable_logit_bias())[1] = 2;
            }),
            "sampling.logit_bias");
  EXPECT_EQ(field([](auto& p) { p.mutable_stop()->set_min_tokens(0); }),
            "stop.min_tokens");
  v1::GenerateRequest one = ExampleRequest();
  one.set_n(1);
  one.set_return_ids(true);
  EXPECT_TRUE(Decode(one).ok());
}

TEST(InferenceWireTest, RefusesWhatCannotBe) {
  auto status = [](auto change) {
    v1::GenerateRequest proto = ExampleRequest();
    change(proto);
    return Decode(proto).status();
  };
  ExpectRefused(status([](auto& p) { p.set_n(0); }), "n");
  ExpectRefused(status([](auto& p) { p.set_timeout_ms(0); }), "timeout_ms");
  ExpectRefused(status([](auto& p) { p.mutable_sampling()->set_logprobs(-1); }),
                "sampling.logprobs");
  ExpectRefused(status([](auto& p) { p.set_tenant(std::string(257, 't')); }),
                "tenant");
  ExpectRefused(
      status([](auto& p) { p.set_request_id(std::string(257, 't')); }),
      "request_id");
  v1::GenerateRequest forever = ExampleRequest();
  forever.set_timeout_ms(std::numeric_limits<uint64_t>::max());
  EXPECT_TRUE(Decode(forever).ok());
}

// A string field on the wire, whatever its bytes.
std::string Field(int number, const std::string& bytes) {
  return absl::StrCat(std::string(1, static_cast<char>(number << 3 | 2)),
                      std::string(1, static_cast<char>(bytes.size())), bytes);
}

TEST(InferenceWireTest, TextThatIsNotUtf8IsNamed) {
  const absl::Status text = DecodeGenerateRequest(Field(2, "a\xff")).status();
  EXPECT_EQ(ErrorInfoOf(text).reason, ErrorReason::kPromptNotUtf8);
  EXPECT_EQ(ErrorInfoOf(text).field, "text");
  // messages.messages[0].content
  const absl::Status chat =
      DecodeGenerateRequest(Field(3, Field(1, Field(2, "\xc3\x28")))).status();
  EXPECT_EQ(ErrorInfoOf(chat).reason, ErrorReason::kPromptNotUtf8);
  EXPECT_EQ(ErrorInfoOf(chat).field, "messages.messages.content");
  ExpectRefused(DecodeGenerateRequest("\x12\x7f").status(),
                "penstock.v1.GenerateRequest");
}

TEST(InferenceWireTest, ResponseHasItsHeadOnce) {
  const ResponseHead head{"r-1", "prefill-0", "decode-0"};
  v1::GenerateResponse first;
  ASSERT_TRUE(
      first.ParseFromString(EncodeGenerateResponse(ExampleFrame(), &head)));
  EXPECT_EQ(first.request_id(), "r-1");
  EXPECT_EQ(first.placement().prefill(), "prefill-0");
  EXPECT_EQ(first.placement().decode(), "decode-0");
  EXPECT_EQ(first.frame().tokens(0).text(), "h\xc3\xa9");
  v1::GenerateResponse next;
  ASSERT_TRUE(
      next.ParseFromString(EncodeGenerateResponse(ExampleFrame(), nullptr)));
  EXPECT_FALSE(next.has_placement());
  EXPECT_EQ(next.request_id(), "");
  // The bytes that a worker made are the bytes that a client gets.
  v1::LegEvent event;
  ASSERT_TRUE(event.ParseFromString(EncodeLegEvent(ExampleFrame())));
  EXPECT_EQ(event.frame().SerializeAsString(),
            next.frame().SerializeAsString());
}

TEST(InferenceWireTest, SmallMethodsRoundTrip) {
  v1::TokenizeRequest tokenize;
  tokenize.set_model("m");
  tokenize.set_text("t");
  tokenize.set_parse_special(false);
  const auto text = DecodeTokenizeRequest(tokenize.SerializeAsString());
  ASSERT_TRUE(text.ok());
  EXPECT_EQ(text->model, "m");
  EXPECT_EQ(std::get<std::string>(text->input), "t");
  EXPECT_FALSE(text->parse_special);

  v1::TokenizeResponse ids;
  ASSERT_TRUE(ids.ParseFromString(EncodeTokenizeResponse({3, 1})));
  EXPECT_THAT(ids.ids(), ElementsAre(3, 1));

  ExpectRefused(DecodeAbortRequest("").status(), "request_id");
  EXPECT_THAT(std::string(DecodeAbortRequest("").status().message()),
              HasSubstr("empty"));
}

TEST(WireTest, DurationsAreClampedToWhatIsAccepted) {
  EXPECT_EQ(ToWireMicros(absl::Seconds(-1)), 0);
  const int64_t longest = ToWireMicros(absl::InfiniteDuration());
  EXPECT_TRUE(WireMicros("f", longest).ok());
  ExpectRefused(WireMicros("f", longest + 1).status(), "f");
}

}  // namespace
}  // namespace penstock
