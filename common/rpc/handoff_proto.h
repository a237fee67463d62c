#pragma once

#include "absl/status/statusor.h"
#include "common/peer/handoff_message.h"
#include "common/rpc/handoff_wire.h"
#include "protos/handoff.pb.h"

namespace penstock {

// Conversions of each message of a handoff. To-proto never fails; what comes
// from the wire is checked, and INVALID_ARGUMENT names the field.

v1::HandoffOffer ToProto(const Offer& offer);
absl::StatusOr<Offer> FromProto(TransferId transfer,
                                const v1::HandoffOffer& proto);
v1::HandoffCredit ToProto(const Credit& credit);
absl::StatusOr<Credit> FromProto(TransferId transfer,
                                 const v1::HandoffCredit& proto);
v1::HandoffReject ToProto(const Reject& reject);
absl::StatusOr<Reject> FromProto(TransferId transfer,
                                 const v1::HandoffReject& proto);
v1::HandoffGrant ToProto(const Grant& grant);
absl::StatusOr<Grant> FromProto(TransferId transfer,
                                const v1::HandoffGrant& proto);
v1::HandoffChunkDone ToProto(const ChunkDone& done);
absl::StatusOr<ChunkDone> FromProto(TransferId transfer,
                                    const v1::HandoffChunkDone& proto);
v1::HandoffChunkNack ToProto(const ChunkNack& nack);
absl::StatusOr<ChunkNack> FromProto(TransferId transfer,
                                    const v1::HandoffChunkNack& proto);
v1::KvManifest ToProto(const KvManifest& manifest);
absl::StatusOr<KvManifest> FromProto(const v1::KvManifest& proto);
v1::HandoffPullAsk ToProto(const PullAsk& ask);
absl::StatusOr<PullAsk> FromProto(TransferId transfer,
                                  const v1::HandoffPullAsk& proto);
v1::HandoffPullDone ToProto(const PullDone& done);
PullDone FromProto(TransferId transfer, const v1::HandoffPullDone& proto);
absl::StatusOr<Renew> FromProto(TransferId transfer,
                                const v1::HandoffRenew& proto);
v1::HandoffAbort ToProto(const Abort& abort);
absl::StatusOr<Abort> FromProto(TransferId transfer,
                                const v1::HandoffAbort& proto);
absl::StatusOr<HandoffHello> FromProto(const v1::HandoffHello& proto);

}  // namespace penstock
