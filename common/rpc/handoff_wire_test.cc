#include "common/rpc/handoff_wire.h"

#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "common/rpc/wire_expectations.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "protos/handoff.pb.h"

namespace penstock {
namespace {

using testing::ElementsAre;

std::vector<BlockHash> Hashes() { return {BlockHash(kBig), BlockHash(1)}; }

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

  const Credit credit = RoundTrip(
      Credit{kTransfer,
             3,
             {{TransportKind::kShm, std::string("name\1", 5), Incarnation(kBig),
               kBig - 1},
              {TransportKind::kTcp, "10.0.0.1:7", Incarnation(kBig), 9}},
             absl::Seconds(10)});
  EXPECT_EQ(credit.have_blocks, 3);
  ASSERT_EQ(credit.addresses.size(), 2u);
  EXPECT_EQ(credit.addresses[0].kind, TransportKind::kShm);
  EXPECT_EQ(credit.addresses[0].address, std::string("name\1", 5));
  EXPECT_EQ(credit.addresses[0].incarnation, Incarnation(kBig));
  EXPECT_EQ(credit.addresses[0].access_key, kBig - 1);
  EXPECT_EQ(credit.addresses[1].kind, TransportKind::kTcp);
  EXPECT_EQ(credit.addresses[1].address, "10.0.0.1:7");
  EXPECT_EQ(credit.addresses[1].access_key, 9u);
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

TEST(HandoffWireTest, PullsKeepEveryField) {
  PullAsk sent;
  sent.transfer = kTransfer;
  sent.layout = LayoutId(1);
  sent.content = ContentId(2);
  sent.numerics = NumericsId(3);
  sent.pages.resize(2);
  sent.pages[0].into = {0, 1};
  sent.pages[1].hash = BlockHash(kBig);
  sent.pages[1].parent = BlockHash(5);
  sent.pages[1].tokens.fill(7);
  sent.pages[1].tokens.back() = 49151;
  sent.pages[1].into = {77, 0xffffffff};
  sent.addresses = {
      {TransportKind::kTcp, "10.0.0.1:7", Incarnation(kBig), kBig - 1}};
  const PullAsk ask = RoundTrip(sent);
  EXPECT_EQ(ask.layout, LayoutId(1));
  EXPECT_EQ(ask.content, ContentId(2));
  EXPECT_EQ(ask.numerics, NumericsId(3));
  ASSERT_EQ(ask.pages.size(), 2u);
  EXPECT_EQ(ask.pages[1].hash, BlockHash(kBig));
  EXPECT_EQ(ask.pages[1].parent, BlockHash(5));
  EXPECT_EQ(ask.pages[1].tokens, sent.pages[1].tokens);
  EXPECT_EQ(ask.pages[1].into, (BlockRef{77, 0xffffffff}));
  ASSERT_EQ(ask.addresses.size(), 1u);
  EXPECT_EQ(ask.addresses[0].address, "10.0.0.1:7");
  EXPECT_EQ(ask.addresses[0].access_key, kBig - 1);
  EXPECT_THAT(RoundTrip(PullDone{kTransfer, {kBig, 0}}).checksums,
              ElementsAre(kBig, 0));
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
  PullAsk ask;
  ask.transfer = kTransfer;
  ask.pages.resize(1);
  ask.pages[0].into = {0, 1};
  ask.addresses.resize(1);
  ExpectRefused(
      refused(ask, [](auto& p) { p.mutable_pull_ask()->clear_pages(); }),
      "pull_ask.pages");
  ExpectRefused(refused(ask,
                        [](auto& p) {
                          p.mutable_pull_ask()->mutable_pages(0)->add_tokens(1);
                        }),
                "pull_ask.pages.tokens");
  const Credit credit{kTransfer, 0, {TransportAddress{}}, {}};
  ExpectRefused(
      refused(credit, [](auto& p) { p.mutable_credit()->clear_addresses(); }),
      "credit.addresses");
  ExpectRefused(
      refused(credit,
              [](auto& p) {
                p.mutable_credit()->mutable_addresses(0)->clear_kind();
              }),
      "credit.addresses.kind");
  ExpectRefused(refused(credit,
                        [](auto& p) {
                          p.mutable_credit()->mutable_addresses(0)->set_address(
                              std::string(100'000, 'a'));
                        }),
                "credit.addresses.address");
  ExpectRefused(refused(credit,
                        [](auto& p) {
                          for (int i = 0; i < 16; ++i) {
                            *p.mutable_credit()->add_addresses() =
                                p.credit().addresses(0);
                          }
                        }),
                "credit.addresses");
  ExpectRefused(refused(Renew{kTransfer, {}},
                        [](auto& p) { p.mutable_renew()->set_lease_us(-1); }),
                "renew.lease_us");
  ExpectRefused(DecodeHandoffFrame("nonsense").status(),
                "penstock.v1.HandoffFrame");
}

}  // namespace
}  // namespace penstock
