#include "common/rpc/handoff_proto.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/rpc/frame_proto.h"
#include "common/rpc/transport_proto.h"
#include "common/rpc/wire_check.h"

namespace penstock {
namespace {

// Of one pull; a worker asks for fewer.
constexpr int kMostPulledPages = 1024;

template <typename Repeated>
std::vector<BlockHash> Hashes(const Repeated& values) {
  std::vector<BlockHash> hashes;
  hashes.reserve(values.size());
  for (uint64_t value : values) hashes.emplace_back(value);
  return hashes;
}

template <typename Repeated>
void AddBlocks(const std::vector<BlockRef>& blocks, Repeated* out) {
  for (const BlockRef& block : blocks) {
    v1::BlockRef* proto = out->Add();
    proto->set_index(block.index);
    proto->set_generation(block.generation);
  }
}

template <typename Repeated>
absl::StatusOr<std::vector<BlockRef>> Blocks(absl::string_view field,
                                             const Repeated& protos) {
  std::vector<BlockRef> blocks;
  blocks.reserve(protos.size());
  for (const v1::BlockRef& proto : protos) {
    if (proto.index() < 0) {
      return Refuse(field, absl::StrCat("has the index ", proto.index()));
    }
    blocks.push_back({proto.index(), proto.generation()});
  }
  return blocks;
}

v1::HandoffStatus StatusProto(absl::StatusCode code,
                              const std::string& message) {
  v1::HandoffStatus proto;
  proto.set_code(static_cast<int>(code));
  proto.set_message(message);
  return proto;
}

absl::StatusOr<absl::StatusCode> ErrorCode(absl::string_view field, int code) {
  if (code < static_cast<int>(absl::StatusCode::kCancelled) ||
      code > static_cast<int>(absl::StatusCode::kUnauthenticated)) {
    return Refuse(field, absl::StrCat("is no error code: ", code));
  }
  return static_cast<absl::StatusCode>(code);
}

}  // namespace

v1::HandoffOffer ToProto(const Offer& offer) {
  v1::HandoffOffer proto;
  proto.set_layout_id(offer.layout.value());
  proto.set_content_id(offer.content.value());
  proto.set_numerics_id(offer.numerics.value());
  proto.set_prompt_tokens(offer.prompt_tokens);
  for (BlockHash hash : offer.block_hashes) {
    proto.add_block_hashes(hash.value());
  }
  for (TransportKind kind : offer.transports) {
    proto.add_transports(ToProto(kind));
  }
  return proto;
}

absl::StatusOr<Offer> FromProto(TransferId transfer,
                                const v1::HandoffOffer& proto) {
  Offer offer;
  offer.transfer = transfer;
  offer.layout = LayoutId(proto.layout_id());
  offer.content = ContentId(proto.content_id());
  offer.numerics = NumericsId(proto.numerics_id());
  ASSIGN_OR_RETURN(offer.prompt_tokens,
                   WireCount("offer.prompt_tokens", proto.prompt_tokens()));
  offer.block_hashes = Hashes(proto.block_hashes());
  ASSIGN_OR_RETURN(offer.transports,
                   FromProto("offer.transports", proto.transports()));
  return offer;
}

v1::HandoffCredit ToProto(const Credit& credit) {
  v1::HandoffCredit proto;
  proto.set_have_blocks(credit.have_blocks);
  AddAddresses(credit.addresses, proto.mutable_addresses());
  proto.set_lease_us(ToWireMicros(credit.lease));
  return proto;
}

absl::StatusOr<Credit> FromProto(TransferId transfer,
                                 const v1::HandoffCredit& proto) {
  Credit credit;
  credit.transfer = transfer;
  ASSIGN_OR_RETURN(credit.have_blocks,
                   WireCount("credit.have_blocks", proto.have_blocks()));
  ASSIGN_OR_RETURN(credit.addresses,
                   FromProto("credit.addresses", proto.addresses()));
  ASSIGN_OR_RETURN(credit.lease,
                   WireMicros("credit.lease_us", proto.lease_us()));
  return credit;
}

v1::HandoffReject ToProto(const Reject& reject) {
  v1::HandoffReject proto;
  *proto.mutable_status() = StatusProto(reject.code, reject.message);
  proto.set_retry_after_us(ToWireMicros(reject.retry_after));
  return proto;
}

absl::StatusOr<Reject> FromProto(TransferId transfer,
                                 const v1::HandoffReject& proto) {
  Reject reject;
  reject.transfer = transfer;
  ASSIGN_OR_RETURN(reject.code,
                   ErrorCode("reject.status.code", proto.status().code()));
  reject.message = proto.status().message();
  ASSIGN_OR_RETURN(reject.retry_after,
                   WireMicros("reject.retry_after_us", proto.retry_after_us()));
  return reject;
}

v1::HandoffGrant ToProto(const Grant& grant) {
  v1::HandoffGrant proto;
  proto.set_chunk(grant.chunk);
  proto.set_first_prompt_block(grant.first_prompt_block);
  AddBlocks(grant.blocks, proto.mutable_blocks());
  return proto;
}

absl::StatusOr<Grant> FromProto(TransferId transfer,
                                const v1::HandoffGrant& proto) {
  Grant grant;
  grant.transfer = transfer;
  ASSIGN_OR_RETURN(grant.chunk, WireCount("grant.chunk", proto.chunk()));
  ASSIGN_OR_RETURN(
      grant.first_prompt_block,
      WireCount("grant.first_prompt_block", proto.first_prompt_block()));
  ASSIGN_OR_RETURN(grant.blocks, Blocks("grant.blocks", proto.blocks()));
  return grant;
}

v1::HandoffChunkDone ToProto(const ChunkDone& done) {
  v1::HandoffChunkDone proto;
  proto.set_chunk(done.chunk);
  proto.set_first_prompt_block(done.first_prompt_block);
  proto.mutable_checksums()->Add(done.checksums.begin(), done.checksums.end());
  AddBlocks(done.shared, proto.mutable_shared());
  return proto;
}

absl::StatusOr<ChunkDone> FromProto(TransferId transfer,
                                    const v1::HandoffChunkDone& proto) {
  ChunkDone done;
  done.transfer = transfer;
  ASSIGN_OR_RETURN(done.chunk, WireCount("chunk_done.chunk", proto.chunk()));
  ASSIGN_OR_RETURN(
      done.first_prompt_block,
      WireCount("chunk_done.first_prompt_block", proto.first_prompt_block()));
  done.checksums.assign(proto.checksums().begin(), proto.checksums().end());
  ASSIGN_OR_RETURN(done.shared, Blocks("chunk_done.shared", proto.shared()));
  return done;
}

v1::HandoffChunkNack ToProto(const ChunkNack& nack) {
  v1::HandoffChunkNack proto;
  proto.set_chunk(nack.chunk);
  proto.set_reason(nack.reason);
  return proto;
}

absl::StatusOr<ChunkNack> FromProto(TransferId transfer,
                                    const v1::HandoffChunkNack& proto) {
  ChunkNack nack;
  nack.transfer = transfer;
  ASSIGN_OR_RETURN(nack.chunk, WireCount("chunk_nack.chunk", proto.chunk()));
  nack.reason = proto.reason();
  return nack;
}

v1::KvManifest ToProto(const KvManifest& manifest) {
  v1::KvManifest proto;
  proto.set_layout_id(manifest.layout.value());
  proto.set_content_id(manifest.content.value());
  proto.set_numerics_id(manifest.numerics.value());
  proto.set_prompt_tokens(manifest.prompt_tokens);
  for (BlockHash hash : manifest.block_hashes) {
    proto.add_block_hashes(hash.value());
  }
  for (const KvManifest::MovedBlock& moved : manifest.moved) {
    v1::KvManifest::MovedBlock* out = proto.add_moved();
    out->set_prompt_block(moved.prompt_block);
    out->set_checksum(moved.checksum);
  }
  proto.set_bytes_moved(manifest.bytes_moved);
  proto.set_chunks(manifest.chunks);
  proto.set_state(manifest.state);
  *proto.mutable_timings() = ToProto(manifest.timings);
  proto.set_cached_tokens(manifest.cached_tokens);
  return proto;
}

absl::StatusOr<KvManifest> FromProto(const v1::KvManifest& proto) {
  KvManifest manifest;
  manifest.layout = LayoutId(proto.layout_id());
  manifest.content = ContentId(proto.content_id());
  manifest.numerics = NumericsId(proto.numerics_id());
  ASSIGN_OR_RETURN(manifest.prompt_tokens,
                   WireCount("manifest.prompt_tokens", proto.prompt_tokens()));
  manifest.block_hashes = Hashes(proto.block_hashes());
  manifest.moved.reserve(proto.moved_size());
  for (const v1::KvManifest::MovedBlock& each : proto.moved()) {
    KvManifest::MovedBlock moved;
    ASSIGN_OR_RETURN(
        moved.prompt_block,
        WireCount("manifest.moved.prompt_block", each.prompt_block()));
    moved.checksum = each.checksum();
    manifest.moved.push_back(moved);
  }
  manifest.bytes_moved = proto.bytes_moved();
  ASSIGN_OR_RETURN(manifest.chunks,
                   WireCount("manifest.chunks", proto.chunks()));
  manifest.state = proto.state();
  ASSIGN_OR_RETURN(manifest.timings, FromProto(proto.timings()));
  ASSIGN_OR_RETURN(manifest.cached_tokens,
                   WireCount("manifest.cached_tokens", proto.cached_tokens()));
  return manifest;
}

v1::HandoffPullAsk ToProto(const PullAsk& ask) {
  v1::HandoffPullAsk proto;
  proto.set_layout_id(ask.layout.value());
  proto.set_content_id(ask.content.value());
  proto.set_numerics_id(ask.numerics.value());
  for (const PullAsk::Page& page : ask.pages) {
    v1::HandoffPullAsk::Page* out = proto.add_pages();
    out->set_hash(page.hash.value());
    out->set_parent(page.parent.value());
    out->mutable_tokens()->Add(page.tokens.begin(), page.tokens.end());
    out->mutable_into()->set_index(page.into.index);
    out->mutable_into()->set_generation(page.into.generation);
  }
  AddAddresses(ask.addresses, proto.mutable_addresses());
  return proto;
}

absl::StatusOr<PullAsk> FromProto(TransferId transfer,
                                  const v1::HandoffPullAsk& proto) {
  PullAsk ask;
  ask.transfer = transfer;
  ask.layout = LayoutId(proto.layout_id());
  ask.content = ContentId(proto.content_id());
  ask.numerics = NumericsId(proto.numerics_id());
  if (proto.pages().empty() || proto.pages_size() > kMostPulledPages) {
    return Refuse("pull_ask.pages",
                  absl::StrCat("are ", proto.pages_size(), ", not 1 to ",
                               kMostPulledPages));
  }
  for (const v1::HandoffPullAsk::Page& each : proto.pages()) {
    PullAsk::Page page;
    page.hash = BlockHash(each.hash());
    page.parent = BlockHash(each.parent());
    if (each.tokens_size() != kBlockTokens) {
      return Refuse("pull_ask.pages.tokens",
                    absl::StrCat("are ", each.tokens_size()));
    }
    std::copy(each.tokens().begin(), each.tokens().end(), page.tokens.begin());
    if (each.into().index() < 0) {
      return Refuse("pull_ask.pages.into",
                    absl::StrCat("has the index ", each.into().index()));
    }
    page.into = {each.into().index(), each.into().generation()};
    ask.pages.push_back(page);
  }
  ASSIGN_OR_RETURN(ask.addresses,
                   FromProto("pull_ask.addresses", proto.addresses()));
  return ask;
}

v1::HandoffPullDone ToProto(const PullDone& done) {
  v1::HandoffPullDone proto;
  proto.mutable_checksums()->Add(done.checksums.begin(), done.checksums.end());
  return proto;
}

PullDone FromProto(TransferId transfer, const v1::HandoffPullDone& proto) {
  return {transfer, {proto.checksums().begin(), proto.checksums().end()}};
}

absl::StatusOr<Renew> FromProto(TransferId transfer,
                                const v1::HandoffRenew& proto) {
  Renew renew;
  renew.transfer = transfer;
  ASSIGN_OR_RETURN(renew.lease, WireMicros("renew.lease_us", proto.lease_us()));
  return renew;
}

v1::HandoffAbort ToProto(const Abort& abort) {
  v1::HandoffAbort proto;
  *proto.mutable_status() = StatusProto(abort.code, abort.reason);
  return proto;
}

absl::StatusOr<Abort> FromProto(TransferId transfer,
                                const v1::HandoffAbort& proto) {
  Abort abort;
  abort.transfer = transfer;
  // OK is an end too: the first token ended the request.
  abort.code = absl::StatusCode::kOk;
  if (proto.status().code() != 0) {
    ASSIGN_OR_RETURN(abort.code,
                     ErrorCode("abort.status.code", proto.status().code()));
  }
  abort.reason = proto.status().message();
  return abort;
}

absl::StatusOr<HandoffHello> FromProto(const v1::HandoffHello& proto) {
  RETURN_IF_ERROR(CheckProtocol("the peer", proto.protocol()));
  RETURN_IF_ERROR(CheckName("hello.worker", proto.worker()));
  if (proto.incarnation() == 0) return Refuse("hello.incarnation", "is 0");
  return HandoffHello{{proto.worker(), Incarnation(proto.incarnation())}};
}

}  // namespace penstock
