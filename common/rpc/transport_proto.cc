#include "common/rpc/transport_proto.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/base/status_macros.h"
#include "common/peer/error_reason.h"
#include "common/rpc/wire_check.h"

namespace penstock {

v1::TransportKind ToProto(TransportKind kind) {
  switch (kind) {
    case TransportKind::kInproc:
      return v1::TRANSPORT_KIND_INPROC;
    case TransportKind::kShm:
      return v1::TRANSPORT_KIND_SHM;
    case TransportKind::kTcp:
      return v1::TRANSPORT_KIND_TCP;
  }
  CHECK(false) << "transport kind " << static_cast<int>(kind);
  return v1::TRANSPORT_KIND_UNSPECIFIED;
}

absl::StatusOr<TransportKind> FromProto(absl::string_view field,
                                        v1::TransportKind kind) {
  switch (kind) {
    case v1::TRANSPORT_KIND_INPROC:
      return TransportKind::kInproc;
    case v1::TRANSPORT_KIND_SHM:
      return TransportKind::kShm;
    case v1::TRANSPORT_KIND_TCP:
      return TransportKind::kTcp;
    default:
      return Refuse(field, absl::StrCat("is an unknown transport: ",
                                        static_cast<int>(kind)));
  }
}

absl::StatusOr<std::vector<TransportKind>> FromProto(
    absl::string_view field,
    const google::protobuf::RepeatedField<int>& kinds) {
  RETURN_IF_ERROR(WireCount(field, kinds.size(), kMaxWireTransports).status());
  std::vector<TransportKind> result;
  for (int value : kinds) {
    ASSIGN_OR_RETURN(TransportKind kind,
                     FromProto(field, static_cast<v1::TransportKind>(value)));
    result.push_back(kind);
  }
  return result;
}

void AddAddresses(
    const std::vector<TransportAddress>& addresses,
    google::protobuf::RepeatedPtrField<v1::TransportAddress>* out) {
  for (const TransportAddress& address : addresses) {
    v1::TransportAddress* proto = out->Add();
    proto->set_kind(ToProto(address.kind));
    proto->set_address(address.address);
    proto->set_incarnation(address.incarnation.value());
    proto->set_access_key(address.access_key);
  }
}

absl::StatusOr<std::vector<TransportAddress>> FromProto(
    absl::string_view field,
    const google::protobuf::RepeatedPtrField<v1::TransportAddress>& protos) {
  if (protos.empty()) return Refuse(field, "are missing");
  RETURN_IF_ERROR(WireCount(field, protos.size(), kMaxWireTransports).status());
  std::vector<TransportAddress> addresses;
  for (const v1::TransportAddress& proto : protos) {
    TransportAddress address;
    ASSIGN_OR_RETURN(address.kind,
                     FromProto(absl::StrCat(field, ".kind"), proto.kind()));
    if (proto.address().size() > kMaxWireName) {
      return Refuse(absl::StrCat(field, ".address"), "is too long");
    }
    address.address = proto.address();
    address.incarnation = Incarnation(proto.incarnation());
    address.access_key = proto.access_key();
    addresses.push_back(std::move(address));
  }
  return addresses;
}

v1::ProtocolRange ToProto(ProtocolRange range) {
  v1::ProtocolRange proto;
  proto.set_min(range.min);
  proto.set_max(range.max);
  return proto;
}

absl::Status CheckProtocol(absl::string_view peer,
                           const v1::ProtocolRange& range) {
  if (Overlap(kProtocol, {range.min(), range.max()})) {
    return absl::OkStatus();
  }
  return MakeError(
      ErrorReason::kIncompatibleWorker,
      absl::StrCat(peer, " speaks protocol ", range.min(), " to ", range.max(),
                   ", this build ", kProtocol.min, " to ", kProtocol.max,
                   "; run the same release on both sides"),
      "protocol");
}

}  // namespace penstock
