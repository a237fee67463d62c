#include "common/rpc/handoff_wire.h"

#include <utility>

#include "common/base/status_macros.h"
#include "common/rpc/handoff_proto.h"
#include "common/rpc/overloaded.h"
#include "common/rpc/transport_proto.h"
#include "common/rpc/wire_check.h"
#include "protos/handoff.pb.h"

namespace penstock {
namespace {

void Fill(const HandoffMessage& message, v1::HandoffFrame* proto) {
  std::visit(
      Overloaded{
          [proto](const Offer& m) { *proto->mutable_offer() = ToProto(m); },
          [proto](const Credit& m) { *proto->mutable_credit() = ToProto(m); },
          [proto](const Reject& m) { *proto->mutable_reject() = ToProto(m); },
          [proto](const Grant& m) { *proto->mutable_grant() = ToProto(m); },
          [proto](const ChunkDone& m) {
            *proto->mutable_chunk_done() = ToProto(m);
          },
          [proto](const ChunkNack& m) {
            *proto->mutable_chunk_nack() = ToProto(m);
          },
          [proto](const Commit& m) {
            *proto->mutable_commit()->mutable_manifest() = ToProto(m.manifest);
          },
          [proto](const CommitAck&) { proto->mutable_commit_ack(); },
          [proto](const Renew& m) {
            proto->mutable_renew()->set_lease_us(ToWireMicros(m.lease));
          },
          [proto](const Abort& m) { *proto->mutable_abort() = ToProto(m); },
          [proto](const FenceAck&) { proto->mutable_fence_ack(); },
          [proto](const PullAsk& m) {
            *proto->mutable_pull_ask() = ToProto(m);
          },
          [proto](const PullDone& m) {
            *proto->mutable_pull_done() = ToProto(m);
          }},
      message);
}

// The body, when it is a message of a transfer.
absl::StatusOr<HandoffMessage> Message(TransferId transfer,
                                       const v1::HandoffFrame& proto) {
  switch (proto.body_case()) {
    case v1::HandoffFrame::kOffer:
      return FromProto(transfer, proto.offer());
    case v1::HandoffFrame::kCredit:
      return FromProto(transfer, proto.credit());
    case v1::HandoffFrame::kReject:
      return FromProto(transfer, proto.reject());
    case v1::HandoffFrame::kGrant:
      return FromProto(transfer, proto.grant());
    case v1::HandoffFrame::kChunkDone:
      return FromProto(transfer, proto.chunk_done());
    case v1::HandoffFrame::kChunkNack:
      return FromProto(transfer, proto.chunk_nack());
    case v1::HandoffFrame::kCommit: {
      ASSIGN_OR_RETURN(KvManifest manifest,
                       FromProto(proto.commit().manifest()));
      return Commit{transfer, std::move(manifest)};
    }
    case v1::HandoffFrame::kCommitAck:
      return CommitAck{transfer};
    case v1::HandoffFrame::kRenew:
      return FromProto(transfer, proto.renew());
    case v1::HandoffFrame::kAbort:
      return FromProto(transfer, proto.abort());
    case v1::HandoffFrame::kFenceAck:
      return FenceAck{transfer};
    case v1::HandoffFrame::kPullAsk:
      return FromProto(transfer, proto.pull_ask());
    case v1::HandoffFrame::kPullDone:
      return FromProto(transfer, proto.pull_done());
    case v1::HandoffFrame::kHello:
    case v1::HandoffFrame::BODY_NOT_SET:
      break;
  }
  return Refuse("body", "is missing or unknown");
}

}  // namespace

std::string EncodeHandoffFrame(const HandoffFrame& frame) {
  v1::HandoffFrame proto;
  proto.set_sequence(frame.sequence);
  if (const auto* hello = std::get_if<HandoffHello>(&frame.body)) {
    *proto.mutable_hello()->mutable_protocol() = ToProto(kProtocol);
    proto.mutable_hello()->set_worker(hello->worker.name);
    proto.mutable_hello()->set_incarnation(hello->worker.incarnation.value());
  } else {
    const auto& message = std::get<HandoffMessage>(frame.body);
    proto.set_request_id(TransferOf(message).request.value());
    proto.set_attempt(TransferOf(message).attempt.value());
    Fill(message, &proto);
  }
  return proto.SerializeAsString();
}

absl::StatusOr<HandoffFrame> DecodeHandoffFrame(absl::string_view bytes) {
  v1::HandoffFrame proto;
  RETURN_IF_ERROR(ParseMessage(bytes, &proto));
  HandoffFrame frame;
  frame.sequence = proto.sequence();
  if (frame.sequence == 0) return Refuse("sequence", "is 0");
  if (proto.body_case() == v1::HandoffFrame::kHello) {
    ASSIGN_OR_RETURN(frame.body, FromProto(proto.hello()));
    return frame;
  }
  const TransferId transfer{RequestId(proto.request_id()),
                            AttemptId(proto.attempt())};
  if (!transfer.request || !transfer.attempt) {
    return Refuse("request_id", "or attempt is 0");
  }
  ASSIGN_OR_RETURN(frame.body, Message(transfer, proto));
  return frame;
}

}  // namespace penstock
