#include "common/rpc/store_wire.h"

#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "protos/kvstore.pb.h"

namespace penstock {
namespace {

TierKey Key() {
  TierKey key{BlockHash(11), BlockHash(12), {}};
  for (int i = 0; i < kBlockTokens; ++i) key.tokens[i] = 100 + i;
  return key;
}

std::vector<TransportAddress> Addresses() {
  return {{TransportKind::kShm, "name", Incarnation(5), 6},
          {TransportKind::kTcp, "127.0.0.1:7", Incarnation(5), 8}};
}

StoreHello Hello() {
  StoreHello hello;
  hello.worker = {"w0", Incarnation(3)};
  hello.layout = {.layers = 2,
                  .kv_heads = 3,
                  .head_dim = 8,
                  .value_dim = 4,
                  .type = KvType::kF32,
                  .arrangement = 7};
  hello.content = ContentId(1);
  hello.numerics = NumericsId(2);
  hello.addresses = Addresses();
  return hello;
}

template <typename T>
T Again(const T& request) {
  auto decoded = DecodeStoreRequest(EncodeStoreRequest(request));
  EXPECT_TRUE(decoded.ok()) << decoded.status();
  return std::get<T>(*decoded);
}

template <typename T>
T AgainReply(const T& reply) {
  auto decoded = DecodeStoreReply(EncodeStoreReply(reply));
  EXPECT_TRUE(decoded.ok()) << decoded.status();
  return std::get<T>(*decoded);
}

TEST(StoreWireTest, RequestsSurvive) {
  const StoreHello hello = Again(Hello());
  EXPECT_EQ(hello.worker, Hello().worker);
  EXPECT_EQ(hello.layout.id(), Hello().layout.id());
  EXPECT_EQ(hello.content, ContentId(1));
  EXPECT_EQ(hello.numerics, NumericsId(2));
  ASSERT_EQ(hello.addresses.size(), 2u);
  EXPECT_EQ(hello.addresses[1].kind, TransportKind::kTcp);
  EXPECT_EQ(hello.addresses[1].address, "127.0.0.1:7");
  EXPECT_EQ(hello.addresses[1].access_key, 8u);

  const StoreLookup lookup =
      Again(StoreLookup{4, {BlockHash(1), BlockHash(2)}});
  EXPECT_EQ(lookup.id, 4u);
  EXPECT_EQ(lookup.chain, (std::vector<BlockHash>{BlockHash(1), BlockHash(2)}));

  const StoreGet get = Again(StoreGet{5, Key(), {6, 7}});
  EXPECT_EQ(get.id, 5u);
  EXPECT_EQ(get.key, Key());
  EXPECT_EQ(get.into, (BlockRef{6, 7}));

  const StorePut put = Again(StorePut{8, Key(), absl::Milliseconds(9)});
  EXPECT_EQ(put.id, 8u);
  EXPECT_EQ(put.key, Key());
  EXPECT_EQ(put.recompute, absl::Milliseconds(9));

  EXPECT_EQ(Again(StoreGiveUp{10}).put, 10u);
}

TEST(StoreWireTest, RepliesSurvive) {
  StoreWelcome sent;
  sent.store.name = "s";
  sent.store.incarnation = Incarnation(4);
  sent.addresses = Addresses();
  const StoreWelcome welcome = AgainReply(sent);
  EXPECT_EQ(welcome.store, sent.store);
  EXPECT_EQ(welcome.addresses.size(), 2u);
  EXPECT_EQ(AgainReply(StoreFound{3, 17}).blocks, 17);
  StoreGot got;
  got.id = 2;
  got.key = Key();
  got.checksum = 0xFEDCBA9876543210;
  EXPECT_EQ(AgainReply(got).key, Key());
  EXPECT_EQ(AgainReply(got).checksum, 0xFEDCBA9876543210);
  got.code = absl::StatusCode::kNotFound;
  EXPECT_EQ(AgainReply(got).code, absl::StatusCode::kNotFound);
  for (TierStoreVerdict verdict :
       {TierStoreVerdict::kTaken, TierStoreVerdict::kHeld,
        TierStoreVerdict::kNotWorthIt, TierStoreVerdict::kBusy}) {
    const StoreGranted granted = AgainReply(
        StoreGranted{6, verdict, {RequestId(7), AttemptId(1)}, {8, 9}});
    EXPECT_EQ(granted.verdict, verdict);
    if (verdict != TierStoreVerdict::kTaken) continue;
    EXPECT_EQ(granted.transfer, (TransferId{RequestId(7), AttemptId(1)}));
    EXPECT_EQ(granted.block, (BlockRef{8, 9}));
  }
}

template <typename Change>
absl::Status Refused(const StoreRequest& request, Change change) {
  v1::KvStoreRequest proto;
  EXPECT_TRUE(proto.ParseFromString(EncodeStoreRequest(request)));
  change(proto);
  return DecodeStoreRequest(proto.SerializeAsString()).status();
}

TEST(StoreWireTest, WhatMakesNoSenseIsRefused) {
  using Proto = v1::KvStoreRequest;
  EXPECT_FALSE(DecodeStoreRequest("").ok());
  EXPECT_FALSE(DecodeStoreReply("").ok());
  EXPECT_FALSE(DecodeStoreRequest("\xff\xff").ok());
  EXPECT_TRUE(absl::IsFailedPrecondition(Refused(Hello(), [](Proto& p) {
    p.mutable_hello()->mutable_protocol()->set_min(1000);
    p.mutable_hello()->mutable_protocol()->set_max(1001);
  })));
  const std::vector<void (*)(v1::KvStoreHello&)> spoil = {
      [](v1::KvStoreHello& h) { h.set_worker(""); },
      [](v1::KvStoreHello& h) { h.set_incarnation(0); },
      [](v1::KvStoreHello& h) { h.clear_addresses(); },
      [](v1::KvStoreHello& h) {
        h.mutable_addresses(0)->set_address(std::string(300, 'x'));
      },
      [](v1::KvStoreHello& h) { h.mutable_layout()->set_layers(0); },
      [](v1::KvStoreHello& h) { h.mutable_layout()->set_layers(1 << 30); },
      [](v1::KvStoreHello& h) { h.mutable_layout()->set_kv_heads(1 << 30); },
      [](v1::KvStoreHello& h) { h.mutable_layout()->set_head_dim(1 << 30); },
      [](v1::KvStoreHello& h) { h.mutable_layout()->set_element_type(3); },
  };
  for (const auto& each : spoil) {
    EXPECT_TRUE(absl::IsInvalidArgument(
        Refused(Hello(), [&](Proto& p) { each(*p.mutable_hello()); })));
  }
  EXPECT_FALSE(Refused(StoreGet{1, Key(), {2, 3}}, [](Proto& p) {
                 p.mutable_get()->mutable_key()->add_tokens(1);
               }).ok());
  EXPECT_FALSE(Refused(StoreGet{1, Key(), {2, 3}}, [](Proto& p) {
                 p.mutable_get()->mutable_into()->set_index(-1);
               }).ok());
  EXPECT_FALSE(Refused(StorePut{1, Key(), absl::Seconds(1)}, [](Proto& p) {
                 p.mutable_put()->set_recompute_us(-1);
               }).ok());
  EXPECT_FALSE(Refused(StorePut{1, Key(), absl::Seconds(1)}, [](Proto& p) {
                 p.mutable_put()->mutable_key()->set_hash(0);
               }).ok());
}

TEST(StoreWireTest, UnknownVerdictsAndCodesAreRefused) {
  v1::KvStoreReply reply;
  reply.mutable_granted()->set_verdict(static_cast<v1::KvStoreVerdict>(99));
  EXPECT_FALSE(DecodeStoreReply(reply.SerializeAsString()).ok());
  reply.mutable_got()->set_code(static_cast<int>(absl::StatusCode::kInternal));
  EXPECT_FALSE(DecodeStoreReply(reply.SerializeAsString()).ok());
  reply.mutable_found()->set_blocks(UINT32_MAX);
  EXPECT_FALSE(DecodeStoreReply(reply.SerializeAsString()).ok());
}

}  // namespace
}  // namespace penstock
