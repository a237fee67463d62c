#include "common/rpc/leg_wire.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/rpc/frame_proto.h"
#include "common/rpc/sampling_proto.h"
#include "common/rpc/transport_proto.h"
#include "common/rpc/wire_check.h"
#include "protos/worker.pb.h"

namespace penstock {
namespace {

using penstock::FromProto;
using penstock::ToProto;

v1::PreparedRequest ToProto(const GenerateRequest& request) {
  v1::PreparedRequest proto;
  proto.set_id(request.id.value());
  proto.set_client_request_id(request.client_request_id);
  proto.set_model(request.model);
  proto.mutable_prompt()->Add(request.prompt.begin(), request.prompt.end());
  *proto.mutable_sampling() = ToProto(request.sampling);
  *proto.mutable_stop() = ToProto(request.stop);
  proto.set_tenant(request.tenant);
  proto.set_cache_salt(request.cache_salt);
  proto.set_priority(request.priority);
  if (request.timeout != absl::InfiniteDuration()) {
    proto.set_timeout_us(ToWireMicros(request.timeout));
  }
  proto.set_n(request.n);
  proto.set_best_of(request.best_of);
  if (request.beam.width > 0) *proto.mutable_beam() = ToProto(request.beam);
  if (request.prompt_logprobs >= 0) {
    proto.set_prompt_logprobs(request.prompt_logprobs);
  }
  return proto;
}

absl::StatusOr<PeerAddress> FromProto(const std::string& field,
                                      const v1::PeerAddress& proto) {
  RETURN_IF_ERROR(CheckName(field + ".worker", proto.worker()));
  if (proto.control().size() > kMaxWireName) {
    return Refuse(field + ".control", "is too long");
  }
  return PeerAddress{proto.worker(), proto.control()};
}

absl::StatusOr<GenerateRequest> FromProto(v1::PreparedRequest* proto) {
  GenerateRequest request;
  request.id = RequestId(proto->id());
  if (!request.id) return Refuse("request.id", "is 0");
  request.client_request_id = std::move(*proto->mutable_client_request_id());
  request.model = std::move(*proto->mutable_model());
  RETURN_IF_ERROR(WireCount("request.prompt", proto->prompt_size()).status());
  request.prompt.assign(proto->prompt().begin(), proto->prompt().end());
  ASSIGN_OR_RETURN(request.sampling, FromProto(proto->sampling()));
  ASSIGN_OR_RETURN(request.stop, FromProto(std::move(*proto->mutable_stop())));
  request.tenant = std::move(*proto->mutable_tenant());
  request.cache_salt = std::move(*proto->mutable_cache_salt());
  request.priority = proto->priority();
  if (proto->has_timeout_us()) {
    ASSIGN_OR_RETURN(request.timeout,
                     WireMicros("request.timeout_us", proto->timeout_us()));
  }
  ASSIGN_OR_RETURN(request.n, WireCount("request.n", proto->n()));
  if (request.n == 0) return Refuse("request.n", "is 0");
  ASSIGN_OR_RETURN(request.best_of,
                   WireCount("request.best_of", proto->best_of()));
  if (proto->has_beam()) {
    ASSIGN_OR_RETURN(request.beam, FromProto(proto->beam()));
  }
  if (proto->has_prompt_logprobs()) {
    ASSIGN_OR_RETURN(
        request.prompt_logprobs,
        WireCount("request.prompt_logprobs", proto->prompt_logprobs()));
  }
  return request;
}

using Floats = google::protobuf::RepeatedField<float>;

// Of each of `count` tokens; all zero when there are none.
absl::StatusOr<std::vector<float>> Mirostat(absl::string_view field,
                                            const Floats& proto, int count) {
  if (proto.empty()) return std::vector<float>(count);
  if (proto.size() != count) {
    return Refuse(field, absl::StrCat("has ", proto.size(), " values for ",
                                      count, " tokens"));
  }
  if (!std::all_of(proto.begin(), proto.end(),
                   [](float mu) { return std::isfinite(mu); })) {
    return Refuse(field, "has a value that is not finite");
  }
  return std::vector<float>(proto.begin(), proto.end());
}

// Nothing when the sampler was never used: most requests are spared the bytes.
template <typename Token>
void SetMirostat(const std::vector<Token>& tokens, Floats* proto) {
  if (std::all_of(tokens.begin(), tokens.end(),
                  [](const Token& t) { return t.mirostat_mu == 0; })) {
    return;
  }
  for (const Token& token : tokens) proto->Add(token.mirostat_mu);
}

v1::DeliveredSample ToProto(const std::vector<DeliveredToken>& sample) {
  v1::DeliveredSample proto;
  for (const DeliveredToken& token : sample) proto.add_tokens(token.token);
  SetMirostat(sample, proto.mutable_mirostat_mu());
  return proto;
}

absl::StatusOr<std::vector<DeliveredToken>> FromProto(
    const v1::DeliveredSample& proto, const GenerateRequest& request) {
  if (proto.tokens_size() > std::max(0, request.stop.max_tokens)) {
    return Refuse("delivered.tokens",
                  absl::StrCat("has ", proto.tokens_size(), " of at most ",
                               request.stop.max_tokens, " tokens"));
  }
  RETURN_IF_ERROR(WireCount("delivered.tokens", proto.tokens_size()).status());
  ASSIGN_OR_RETURN(std::vector<float> mirostat,
                   Mirostat("delivered.mirostat_mu", proto.mirostat_mu(),
                            proto.tokens_size()));
  std::vector<DeliveredToken> sample(mirostat.size());
  for (size_t i = 0; i < sample.size(); ++i) {
    sample[i] = {proto.tokens(static_cast<int>(i)), mirostat[i]};
  }
  return sample;
}

// Precondition: `request` is decoded.
absl::Status DecodeDelivered(const v1::LegRequest& proto, LegRequest& leg) {
  // What is given back at the end is never delivered in part.
  const int most = leg.request.deferred() ? 0 : leg.request.n;
  if (proto.delivered_size() > most) {
    return Refuse("delivered", absl::StrCat("has ", proto.delivered_size(),
                                            " of at most ", most, " samples"));
  }
  for (const v1::DeliveredSample& each : proto.delivered()) {
    ASSIGN_OR_RETURN(std::vector<DeliveredToken> sample,
                     FromProto(each, leg.request));
    leg.delivered.push_back(std::move(sample));
  }
  return absl::OkStatus();
}

absl::StatusOr<TokenFrame> DecodeFrame(v1::LegEvent* proto) {
  ASSIGN_OR_RETURN(TokenFrame frame,
                   FromProto(std::move(*proto->mutable_frame())));
  ASSIGN_OR_RETURN(std::vector<float> mirostat,
                   Mirostat("mirostat_mu", proto->mirostat_mu(),
                            static_cast<int>(frame.tokens.size())));
  for (size_t i = 0; i < mirostat.size(); ++i) {
    frame.tokens[i].mirostat_mu = mirostat[i];
  }
  return frame;
}

}  // namespace

std::string EncodeLegRequest(const LegRequest& request) {
  v1::LegRequest proto;
  *proto.mutable_protocol() = ToProto(kProtocol);
  *proto.mutable_request() = ToProto(request.request);
  proto.set_attempt(request.attempt.value());
  if (!request.partner.worker.empty()) {
    proto.mutable_partner()->set_worker(request.partner.worker);
    proto.mutable_partner()->set_control(request.partner.control);
  }
  if (!request.source.worker.empty()) {
    proto.mutable_source()->set_worker(request.source.worker);
    proto.mutable_source()->set_control(request.source.control);
    proto.set_source_tokens(request.source_tokens);
  }
  proto.set_worker_incarnation(request.worker_incarnation.value());
  for (const std::vector<DeliveredToken>& sample : request.delivered) {
    *proto.add_delivered() = ToProto(sample);
  }
  return proto.SerializeAsString();
}

absl::StatusOr<LegRequest> DecodeLegRequest(absl::string_view bytes) {
  v1::LegRequest proto;
  RETURN_IF_ERROR(ParseMessage(bytes, &proto));
  RETURN_IF_ERROR(CheckProtocol("the router", proto.protocol()));
  LegRequest request;
  ASSIGN_OR_RETURN(request.request, FromProto(proto.mutable_request()));
  request.attempt = AttemptId(proto.attempt());
  if (!request.attempt) return Refuse("attempt", "is 0");
  if (proto.has_partner()) {
    ASSIGN_OR_RETURN(request.partner, FromProto("partner", proto.partner()));
  }
  if (proto.has_source()) {
    ASSIGN_OR_RETURN(request.source, FromProto("source", proto.source()));
    ASSIGN_OR_RETURN(request.source_tokens,
                     WireCount("source_tokens", proto.source_tokens()));
  }
  request.worker_incarnation = Incarnation(proto.worker_incarnation());
  RETURN_IF_ERROR(DecodeDelivered(proto, request));
  return request;
}

std::string EncodeLegEvent(const LegEvent& event) {
  v1::LegEvent proto;
  if (const auto* frame = std::get_if<TokenFrame>(&event)) {
    *proto.mutable_frame() = ToProto(*frame);
    SetMirostat(frame->tokens, proto.mutable_mirostat_mu());
  } else {
    proto.mutable_accepted();
  }
  return proto.SerializeAsString();
}

absl::StatusOr<LegEvent> DecodeLegEvent(absl::string_view bytes) {
  v1::LegEvent proto;
  RETURN_IF_ERROR(ParseMessage(bytes, &proto));
  switch (proto.event_case()) {
    case v1::LegEvent::kAccepted:
      return LegAccepted{};
    case v1::LegEvent::kFrame:
      return DecodeFrame(&proto);
    case v1::LegEvent::EVENT_NOT_SET:
      break;
  }
  return Refuse("event", "is missing or unknown");
}

}  // namespace penstock
