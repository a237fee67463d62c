#pragma once

#include <vector>

#include "absl/status/statusor.h"
#include "common/rpc/protocol.h"
#include "common/transfer/kv_transport.h"
#include "protos/handoff.pb.h"
#include "protos/worker.pb.h"

namespace penstock {

// Small conversions that worker, handoff and store messages share.

// More transports than this are not one worker's.
inline constexpr int kMaxWireTransports = 16;

v1::TransportKind ToProto(TransportKind kind);
// INVALID_ARGUMENT for an unknown value.
absl::StatusOr<TransportKind> FromProto(absl::string_view field,
                                        v1::TransportKind kind);
absl::StatusOr<std::vector<TransportKind>> FromProto(
    absl::string_view field, const google::protobuf::RepeatedField<int>& kinds);

void AddAddresses(
    const std::vector<TransportAddress>& addresses,
    google::protobuf::RepeatedPtrField<v1::TransportAddress>* out);
// INVALID_ARGUMENT when there are none, too many, or one is too long.
absl::StatusOr<std::vector<TransportAddress>> FromProto(
    absl::string_view field,
    const google::protobuf::RepeatedPtrField<v1::TransportAddress>& protos);

v1::ProtocolRange ToProto(ProtocolRange range);
// FAILED_PRECONDITION unless the range overlaps kProtocol.
absl::Status CheckProtocol(absl::string_view peer,
                           const v1::ProtocolRange& range);

}  // namespace penstock
