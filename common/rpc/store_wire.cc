#include "common/rpc/store_wire.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/rpc/overloaded.h"
#include "common/rpc/transport_proto.h"
#include "common/rpc/wire_check.h"
#include "protos/kvstore.pb.h"

namespace penstock {
namespace {

using penstock::FromProto;
using penstock::ToProto;

// Far above what a model has, and a block of it far from overflow.
constexpr int kMaxLayers = 4096;
constexpr int kMaxHeads = 4096;
constexpr int kMaxHeadDim = 1 << 16;

v1::KvLayout ToProto(const KvLayout& layout) {
  v1::KvLayout proto;
  proto.set_layers(layout.layers);
  proto.set_kv_heads(layout.kv_heads);
  proto.set_head_dim(layout.head_dim);
  proto.set_value_dim(layout.value_dim);
  proto.set_element_type(Traits(layout.type).code);
  proto.set_arrangement(layout.arrangement);
  return proto;
}

absl::StatusOr<KvLayout> FromProto(const v1::KvLayout& proto) {
  KvLayout layout;
  ASSIGN_OR_RETURN(layout.layers,
                   WireCount("layout.layers", proto.layers(), kMaxLayers));
  ASSIGN_OR_RETURN(layout.kv_heads,
                   WireCount("layout.kv_heads", proto.kv_heads(), kMaxHeads));
  ASSIGN_OR_RETURN(layout.head_dim,
                   WireCount("layout.head_dim", proto.head_dim(), kMaxHeadDim));
  ASSIGN_OR_RETURN(layout.value_dim, WireCount("layout.value_dim",
                                               proto.value_dim(), kMaxHeadDim));
  ASSIGN_OR_RETURN(layout.arrangement,
                   WireCount("layout.arrangement", proto.arrangement()));
  const auto* type = std::find_if(std::begin(kKvTypes), std::end(kKvTypes),
                                  [&](const KvTypeTraits& known) {
                                    return known.code == proto.element_type();
                                  });
  if (type == std::end(kKvTypes)) {
    return Refuse("layout.element_type",
                  absl::StrCat("is ", proto.element_type()));
  }
  layout.type = type->type;
  if (layout.block_bytes() == 0) return Refuse("layout", "has no bytes");
  return layout;
}

v1::KvPageKey ToProto(const TierKey& key) {
  v1::KvPageKey proto;
  proto.set_hash(key.hash.value());
  proto.set_parent(key.parent.value());
  for (TokenId token : key.tokens) proto.add_tokens(token);
  return proto;
}

absl::StatusOr<TierKey> FromProto(const v1::KvPageKey& proto) {
  if (proto.tokens_size() != kBlockTokens) {
    return Refuse("key.tokens", absl::StrCat("are ", proto.tokens_size()));
  }
  if (proto.hash() == 0) return Refuse("key.hash", "is 0");
  TierKey key;
  key.hash = BlockHash(proto.hash());
  key.parent = BlockHash(proto.parent());
  std::copy(proto.tokens().begin(), proto.tokens().end(), key.tokens.begin());
  return key;
}

void Fill(BlockRef block, v1::BlockRef* proto) {
  proto->set_index(block.index);
  proto->set_generation(block.generation);
}

absl::StatusOr<BlockRef> FromProto(absl::string_view field,
                                   const v1::BlockRef& proto) {
  if (proto.index() < 0) {
    return Refuse(field, absl::StrCat("has the index ", proto.index()));
  }
  return BlockRef{proto.index(), proto.generation()};
}

constexpr std::pair<TierStoreVerdict, v1::KvStoreVerdict> kVerdicts[] = {
    {TierStoreVerdict::kTaken, v1::KV_STORE_VERDICT_TAKEN},
    {TierStoreVerdict::kHeld, v1::KV_STORE_VERDICT_HELD},
    {TierStoreVerdict::kNotWorthIt, v1::KV_STORE_VERDICT_NOT_WORTH_IT},
    {TierStoreVerdict::kBusy, v1::KV_STORE_VERDICT_BUSY},
};

v1::KvStoreVerdict ToProto(TierStoreVerdict verdict) {
  for (const auto& [ours, theirs] : kVerdicts) {
    if (ours == verdict) return theirs;
  }
  return v1::KV_STORE_VERDICT_UNSPECIFIED;
}

absl::StatusOr<TierStoreVerdict> FromProto(v1::KvStoreVerdict verdict) {
  for (const auto& [ours, theirs] : kVerdicts) {
    if (theirs == verdict) return ours;
  }
  return Refuse("granted.verdict", absl::StrCat("is unknown: ", verdict));
}

absl::StatusOr<StoreHello> FromProto(const v1::KvStoreHello& proto) {
  RETURN_IF_ERROR(CheckProtocol("the worker", proto.protocol()));
  RETURN_IF_ERROR(CheckName("hello.worker", proto.worker()));
  if (proto.incarnation() == 0) return Refuse("hello.incarnation", "is 0");
  StoreHello hello;
  hello.worker = {proto.worker(), Incarnation(proto.incarnation())};
  ASSIGN_OR_RETURN(hello.layout, FromProto(proto.layout()));
  hello.content = ContentId(proto.content_id());
  hello.numerics = NumericsId(proto.numerics_id());
  ASSIGN_OR_RETURN(hello.addresses,
                   FromProto("hello.addresses", proto.addresses()));
  return hello;
}

absl::StatusOr<StoreWelcome> FromProto(const v1::KvStoreWelcome& proto) {
  RETURN_IF_ERROR(CheckProtocol("the store", proto.protocol()));
  RETURN_IF_ERROR(CheckName("welcome.store", proto.store()));
  if (proto.incarnation() == 0) return Refuse("welcome.incarnation", "is 0");
  StoreWelcome welcome;
  welcome.store = {proto.store(), Incarnation(proto.incarnation())};
  ASSIGN_OR_RETURN(welcome.addresses,
                   FromProto("welcome.addresses", proto.addresses()));
  return welcome;
}

absl::StatusOr<StoreGot> FromProto(const v1::KvStoreGot& proto) {
  StoreGot got;
  got.id = proto.id();
  switch (proto.code()) {
    case static_cast<int>(absl::StatusCode::kOk): {
      ASSIGN_OR_RETURN(got.key, FromProto(proto.key()));
      got.checksum = proto.checksum();
      break;
    }
    case static_cast<int>(absl::StatusCode::kNotFound):
    case static_cast<int>(absl::StatusCode::kDataLoss):
    case static_cast<int>(absl::StatusCode::kUnavailable):
      break;
    default:
      return Refuse("got.code", absl::StrCat("is ", proto.code()));
  }
  got.code = static_cast<absl::StatusCode>(proto.code());
  return got;
}

absl::StatusOr<StoreGranted> FromProto(const v1::KvStoreGranted& proto) {
  StoreGranted granted;
  granted.id = proto.id();
  ASSIGN_OR_RETURN(granted.verdict, FromProto(proto.verdict()));
  if (granted.verdict == TierStoreVerdict::kTaken) {
    granted.transfer = {RequestId(proto.transfer_request()),
                        AttemptId(proto.transfer_attempt())};
    ASSIGN_OR_RETURN(granted.block, FromProto("granted.block", proto.block()));
  }
  return granted;
}

}  // namespace

std::string EncodeStoreRequest(const StoreRequest& request) {
  v1::KvStoreRequest proto;
  std::visit(Overloaded{[&](const StoreHello& m) {
                          v1::KvStoreHello* out = proto.mutable_hello();
                          *out->mutable_protocol() = ToProto(kProtocol);
                          out->set_worker(m.worker.name);
                          out->set_incarnation(m.worker.incarnation.value());
                          *out->mutable_layout() = ToProto(m.layout);
                          out->set_content_id(m.content.value());
                          out->set_numerics_id(m.numerics.value());
                          AddAddresses(m.addresses, out->mutable_addresses());
                        },
                        [&](const StoreLookup& m) {
                          proto.mutable_lookup()->set_id(m.id);
                          for (BlockHash hash : m.chain) {
                            proto.mutable_lookup()->add_chain(hash.value());
                          }
                        },
                        [&](const StoreGet& m) {
                          proto.mutable_get()->set_id(m.id);
                          *proto.mutable_get()->mutable_key() = ToProto(m.key);
                          Fill(m.into, proto.mutable_get()->mutable_into());
                        },
                        [&](const StorePut& m) {
                          proto.mutable_put()->set_id(m.id);
                          *proto.mutable_put()->mutable_key() = ToProto(m.key);
                          proto.mutable_put()->set_recompute_us(
                              ToWireMicros(m.recompute));
                        },
                        [&](const StoreGiveUp& m) {
                          proto.mutable_give_up()->set_put(m.put);
                        }},
             request);
  return proto.SerializeAsString();
}

absl::StatusOr<StoreRequest> DecodeStoreRequest(absl::string_view bytes) {
  v1::KvStoreRequest proto;
  RETURN_IF_ERROR(ParseMessage(bytes, &proto));
  switch (proto.body_case()) {
    case v1::KvStoreRequest::kHello:
      return FromProto(proto.hello());
    case v1::KvStoreRequest::kLookup: {
      StoreLookup lookup;
      lookup.id = proto.lookup().id();
      lookup.chain.reserve(proto.lookup().chain_size());
      for (uint64_t hash : proto.lookup().chain()) {
        lookup.chain.emplace_back(hash);
      }
      return lookup;
    }
    case v1::KvStoreRequest::kGet: {
      StoreGet get;
      get.id = proto.get().id();
      if (get.id == 0) return Refuse("get.id", "is 0");
      ASSIGN_OR_RETURN(get.key, FromProto(proto.get().key()));
      ASSIGN_OR_RETURN(get.into, FromProto("get.into", proto.get().into()));
      return get;
    }
    case v1::KvStoreRequest::kPut: {
      StorePut put;
      put.id = proto.put().id();
      ASSIGN_OR_RETURN(put.key, FromProto(proto.put().key()));
      ASSIGN_OR_RETURN(put.recompute, WireMicros("put.recompute_us",
                                                 proto.put().recompute_us()));
      return put;
    }
    case v1::KvStoreRequest::kGiveUp:
      return StoreGiveUp{proto.give_up().put()};
    case v1::KvStoreRequest::BODY_NOT_SET:
      break;
  }
  return Refuse("body", "is missing or unknown");
}

std::string EncodeStoreReply(const StoreReply& reply) {
  v1::KvStoreReply proto;
  std::visit(
      Overloaded{[&](const StoreWelcome& m) {
                   v1::KvStoreWelcome* out = proto.mutable_welcome();
                   *out->mutable_protocol() = ToProto(kProtocol);
                   out->set_store(m.store.name);
                   out->set_incarnation(m.store.incarnation.value());
                   AddAddresses(m.addresses, out->mutable_addresses());
                 },
                 [&](const StoreFound& m) {
                   proto.mutable_found()->set_id(m.id);
                   proto.mutable_found()->set_blocks(m.blocks);
                 },
                 [&](const StoreGot& m) {
                   proto.mutable_got()->set_id(m.id);
                   proto.mutable_got()->set_code(static_cast<int>(m.code));
                   if (m.code != absl::StatusCode::kOk) return;
                   *proto.mutable_got()->mutable_key() = ToProto(m.key);
                   proto.mutable_got()->set_checksum(m.checksum);
                 },
                 [&](const StoreGranted& m) {
                   v1::KvStoreGranted* out = proto.mutable_granted();
                   out->set_id(m.id);
                   out->set_verdict(ToProto(m.verdict));
                   out->set_transfer_request(m.transfer.request.value());
                   out->set_transfer_attempt(m.transfer.attempt.value());
                   Fill(m.block, out->mutable_block());
                 }},
      reply);
  return proto.SerializeAsString();
}

absl::StatusOr<StoreReply> DecodeStoreReply(absl::string_view bytes) {
  v1::KvStoreReply proto;
  RETURN_IF_ERROR(ParseMessage(bytes, &proto));
  switch (proto.body_case()) {
    case v1::KvStoreReply::kWelcome:
      return FromProto(proto.welcome());
    case v1::KvStoreReply::kFound: {
      StoreFound found;
      found.id = proto.found().id();
      ASSIGN_OR_RETURN(found.blocks,
                       WireCount("found.blocks", proto.found().blocks()));
      return found;
    }
    case v1::KvStoreReply::kGot:
      return FromProto(proto.got());
    case v1::KvStoreReply::kGranted:
      return FromProto(proto.granted());
    case v1::KvStoreReply::BODY_NOT_SET:
      break;
  }
  return Refuse("body", "is missing or unknown");
}

std::string EncodeStoreReport(const StoreReport& report) {
  v1::KvStoreStats proto;
  proto.set_workers(report.workers);
  proto.set_memory_pages(report.memory_pages);
  proto.set_memory_page_limit(report.memory_page_limit);
  proto.set_disk_pages(report.disk_pages);
  proto.set_disk_bytes(report.disk_bytes);
  proto.set_puts(report.puts);
  proto.set_gets(report.gets);
  proto.set_get_hits(report.get_hits);
  proto.set_bad_pages(report.bad_pages);
  proto.set_evicted(report.evicted);
  proto.set_content_id(report.identity.content.value());
  proto.set_layout_id(report.identity.layout.value());
  proto.set_numerics_id(report.identity.numerics.value());
  return proto.SerializeAsString();
}

}  // namespace penstock
