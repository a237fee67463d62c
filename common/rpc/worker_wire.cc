#include "common/rpc/worker_wire.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/base/status_macros.h"
#include "common/rpc/overloaded.h"
#include "common/rpc/transport_proto.h"
#include "common/rpc/wire_check.h"
#include "protos/worker.pb.h"

namespace penstock {
namespace {

constexpr double kMaxStepCost = 3600;  // seconds

using penstock::FromProto;
using penstock::ToProto;

v1::WorkerInfo ToProto(const WorkerInfo& info) {
  v1::WorkerInfo proto;
  *proto.mutable_protocol() = ToProto(kProtocol);
  proto.set_name(info.key.name);
  proto.set_incarnation(info.key.incarnation.value());
  proto.set_prefill(info.roles.prefill);
  proto.set_decode(info.roles.decode);
  proto.set_control_address(info.control_address);
  proto.set_model(info.model);
  proto.set_content_id(info.content.value());
  proto.set_layout_id(info.layout.value());
  proto.set_numerics_id(info.numerics.value());
  proto.set_context_length(info.context_length);
  proto.set_total_blocks(info.total_blocks);
  proto.set_max_sequences(info.max_sequences);
  for (TransportKind kind : info.transports) {
    proto.add_transports(ToProto(kind));
  }
  return proto;
}

absl::StatusOr<WorkerInfo> FromProto(const v1::WorkerInfo& proto) {
  RETURN_IF_ERROR(CheckProtocol("the worker", proto.protocol()));
  WorkerInfo info;
  RETURN_IF_ERROR(CheckName("info.name", proto.name()));
  info.key = {proto.name(), Incarnation(proto.incarnation())};
  if (!info.key.incarnation) return Refuse("info.incarnation", "is 0");
  info.roles = {proto.prefill(), proto.decode()};
  RETURN_IF_ERROR(CheckName("info.control_address", proto.control_address()));
  info.control_address = proto.control_address();
  RETURN_IF_ERROR(CheckName("info.model", proto.model()));
  info.model = proto.model();
  info.content = ContentId(proto.content_id());
  info.layout = LayoutId(proto.layout_id());
  info.numerics = NumericsId(proto.numerics_id());
  ASSIGN_OR_RETURN(info.context_length,
                   WireCount("info.context_length", proto.context_length()));
  ASSIGN_OR_RETURN(info.total_blocks,
                   WireCount("info.total_blocks", proto.total_blocks()));
  ASSIGN_OR_RETURN(info.max_sequences,
                   WireCount("info.max_sequences", proto.max_sequences()));
  ASSIGN_OR_RETURN(info.transports,
                   FromProto("info.transports", proto.transports()));
  return info;
}

v1::WorkerHealth ToProto(WorkerHealth health) {
  switch (health) {
    case WorkerHealth::kLoading:
      return v1::WORKER_HEALTH_LOADING;
    case WorkerHealth::kReady:
      return v1::WORKER_HEALTH_READY;
    case WorkerHealth::kDraining:
      return v1::WORKER_HEALTH_DRAINING;
    case WorkerHealth::kFailed:
      return v1::WORKER_HEALTH_FAILED;
  }
  CHECK(false) << "health " << static_cast<int>(health);
  return v1::WORKER_HEALTH_UNSPECIFIED;
}

absl::StatusOr<WorkerHealth> FromProto(v1::WorkerHealth health) {
  switch (health) {
    case v1::WORKER_HEALTH_LOADING:
      return WorkerHealth::kLoading;
    case v1::WORKER_HEALTH_READY:
      return WorkerHealth::kReady;
    case v1::WORKER_HEALTH_DRAINING:
      return WorkerHealth::kDraining;
    case v1::WORKER_HEALTH_FAILED:
      return WorkerHealth::kFailed;
    default:
      return Refuse("load.health",
                    absl::StrCat("is unknown: ", static_cast<int>(health)));
  }
}

v1::StepCosts ToProto(const StepCosts& costs) {
  v1::StepCosts proto;
  proto.set_step(costs.step);
  proto.set_row(costs.row);
  proto.set_pair(costs.pair);
  proto.set_sample(costs.sample);
  return proto;
}

absl::StatusOr<StepCosts> FromProto(const v1::StepCosts& proto) {
  const std::pair<const char*, double> named[] = {
      {"load.costs.step", proto.step()},
      {"load.costs.row", proto.row()},
      {"load.costs.pair", proto.pair()},
      {"load.costs.sample", proto.sample()}};
  for (const auto& [field, seconds] : named) {
    if (seconds >= 0 && seconds <= kMaxStepCost) continue;
    return Refuse(field, absl::StrCat("is ", seconds, " seconds"));
  }
  return StepCosts{.step = proto.step(),
                   .row = proto.row(),
                   .pair = proto.pair(),
                   .sample = proto.sample()};
}

v1::WorkerLoad ToProto(const WorkerLoad& load) {
  v1::WorkerLoad proto;
  proto.set_health(ToProto(load.health));
  proto.set_queued_requests(load.queued_requests);
  proto.set_active_requests(load.active_requests);
  proto.set_queued_tokens(load.queued_tokens);
  proto.set_free_blocks(load.free_blocks);
  proto.set_total_blocks(load.total_blocks);
  proto.set_step_time_us(ToWireMicros(load.step_time));
  if (load.costs != StepCosts{}) *proto.mutable_costs() = ToProto(load.costs);
  return proto;
}

absl::StatusOr<WorkerLoad> FromProto(const v1::WorkerLoad& proto) {
  WorkerLoad load;
  ASSIGN_OR_RETURN(load.health, FromProto(proto.health()));
  ASSIGN_OR_RETURN(load.queued_requests,
                   WireCount("load.queued_requests", proto.queued_requests()));
  ASSIGN_OR_RETURN(load.active_requests,
                   WireCount("load.active_requests", proto.active_requests()));
  ASSIGN_OR_RETURN(load.queued_tokens,
                   WireCount("load.queued_tokens", proto.queued_tokens()));
  ASSIGN_OR_RETURN(load.free_blocks,
                   WireCount("load.free_blocks", proto.free_blocks()));
  ASSIGN_OR_RETURN(load.total_blocks,
                   WireCount("load.total_blocks", proto.total_blocks()));
  ASSIGN_OR_RETURN(load.step_time,
                   WireMicros("load.step_time_us", proto.step_time_us()));
  ASSIGN_OR_RETURN(load.costs, FromProto(proto.costs()));
  return load;
}

v1::BlocksStored ToProto(const BlocksStored& stored) {
  v1::BlocksStored proto;
  proto.set_parent(stored.parent.value());
  for (BlockHash hash : stored.hashes) proto.add_hashes(hash.value());
  return proto;
}

std::vector<BlockHash> Hashes(
    const google::protobuf::RepeatedField<uint64_t>& values) {
  std::vector<BlockHash> hashes;
  hashes.reserve(values.size());
  for (uint64_t value : values) hashes.emplace_back(value);
  return hashes;
}

BlocksStored FromProto(const v1::BlocksStored& proto) {
  return {BlockHash(proto.parent()), Hashes(proto.hashes())};
}

v1::CacheEvent ToProto(const CacheEvent& event) {
  v1::CacheEvent proto;
  proto.set_sequence(event.sequence);
  std::visit(
      Overloaded{[&proto](const BlocksStored& stored) {
                   *proto.mutable_stored() = ToProto(stored);
                 },
                 [&proto](const BlocksRemoved& removed) {
                   for (BlockHash hash : removed.hashes) {
                     proto.mutable_removed()->add_hashes(hash.value());
                   }
                 },
                 [&proto](const CacheCleared&) { proto.mutable_cleared(); }},
      event.change);
  return proto;
}

absl::StatusOr<CacheEvent> FromProto(const v1::CacheEvent& proto) {
  CacheEvent event;
  event.sequence = proto.sequence();
  if (event.sequence == 0) return Refuse("events.sequence", "is 0");
  switch (proto.change_case()) {
    case v1::CacheEvent::kStored:
      event.change = FromProto(proto.stored());
      return event;
    case v1::CacheEvent::kRemoved:
      event.change = BlocksRemoved{Hashes(proto.removed().hashes())};
      return event;
    case v1::CacheEvent::kCleared:
      event.change = CacheCleared{};
      return event;
    case v1::CacheEvent::CHANGE_NOT_SET:
      break;
  }
  return Refuse("events.change", "is missing or unknown");
}

absl::StatusOr<CacheEvents> FromProto(const v1::CacheEvents& proto) {
  CacheEvents events;
  events.reserve(proto.events_size());
  for (const v1::CacheEvent& each : proto.events()) {
    ASSIGN_OR_RETURN(CacheEvent event, FromProto(each));
    events.push_back(std::move(event));
  }
  return events;
}

CacheSnapshot FromProto(const v1::CacheSnapshot& proto) {
  CacheSnapshot snapshot;
  snapshot.sequence = proto.sequence();
  snapshot.chains.reserve(proto.chains_size());
  for (const v1::BlocksStored& chain : proto.chains()) {
    snapshot.chains.push_back(FromProto(chain));
  }
  return snapshot;
}

}  // namespace

std::string EncodeWorkerMessage(const WorkerMessage& message) {
  v1::WorkerMessage proto;
  std::visit(
      Overloaded{[&proto](const WorkerInfo& info) {
                   *proto.mutable_info() = ToProto(info);
                 },
                 [&proto](const WorkerLoad& load) {
                   *proto.mutable_load() = ToProto(load);
                 },
                 [&proto](const CacheEvents& events) {
                   for (const CacheEvent& event : events) {
                     *proto.mutable_events()->add_events() = ToProto(event);
                   }
                 },
                 [&proto](const CacheSnapshot& snapshot) {
                   proto.mutable_snapshot()->set_sequence(snapshot.sequence);
                   for (const BlocksStored& chain : snapshot.chains) {
                     *proto.mutable_snapshot()->add_chains() = ToProto(chain);
                   }
                 }},
      message);
  return proto.SerializeAsString();
}

absl::StatusOr<WorkerMessage> DecodeWorkerMessage(absl::string_view bytes) {
  v1::WorkerMessage proto;
  RETURN_IF_ERROR(ParseMessage(bytes, &proto));
  switch (proto.message_case()) {
    case v1::WorkerMessage::kInfo:
      return FromProto(proto.info());
    case v1::WorkerMessage::kLoad:
      return FromProto(proto.load());
    case v1::WorkerMessage::kEvents:
      return FromProto(proto.events());
    case v1::WorkerMessage::kSnapshot:
      return FromProto(proto.snapshot());
    case v1::WorkerMessage::MESSAGE_NOT_SET:
      break;
  }
  return Refuse("message", "is missing or unknown");
}

std::string EncodeRouterMessage(const RouterMessage& message) {
  v1::RouterMessage proto;
  std::visit(Overloaded{[&proto](const Welcome&) {
                          *proto.mutable_welcome()->mutable_protocol() =
                              ToProto(kProtocol);
                        },
                        [&proto](const CacheAck& ack) {
                          proto.mutable_ack()->set_sequence(ack.sequence);
                        },
                        [&proto](const CacheReplay& replay) {
                          proto.mutable_replay()->set_from_sequence(
                              replay.from_sequence);
                        }},
             message);
  return proto.SerializeAsString();
}

absl::StatusOr<RouterMessage> DecodeRouterMessage(absl::string_view bytes) {
  v1::RouterMessage proto;
  RETURN_IF_ERROR(ParseMessage(bytes, &proto));
  switch (proto.message_case()) {
    case v1::RouterMessage::kWelcome:
      RETURN_IF_ERROR(CheckProtocol("the router", proto.welcome().protocol()));
      return Welcome{};
    case v1::RouterMessage::kAck:
      return CacheAck{proto.ack().sequence()};
    case v1::RouterMessage::kReplay:
      return CacheReplay{proto.replay().from_sequence()};
    case v1::RouterMessage::MESSAGE_NOT_SET:
      break;
  }
  return Refuse("message", "is missing or unknown");
}

}  // namespace penstock
