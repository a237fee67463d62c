#include "common/rpc/frame_proto.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/base/status_macros.h"
#include "common/rpc/wire_check.h"

namespace penstock {
namespace {

v1::FinishReason ToProto(FinishReason finish) {
  switch (finish) {
    case FinishReason::kNone:
      return v1::FINISH_REASON_NONE;
    case FinishReason::kStop:
      return v1::FINISH_REASON_STOP;
    case FinishReason::kLength:
      return v1::FINISH_REASON_LENGTH;
  }
  CHECK(false) << "finish reason " << static_cast<int>(finish);
  return v1::FINISH_REASON_NONE;
}

absl::StatusOr<FinishReason> FromProto(v1::FinishReason finish) {
  switch (finish) {
    case v1::FINISH_REASON_NONE:
      return FinishReason::kNone;
    case v1::FINISH_REASON_STOP:
      return FinishReason::kStop;
    case v1::FINISH_REASON_LENGTH:
      return FinishReason::kLength;
    default:
      return Refuse("frame.finish",
                    absl::StrCat("is unknown: ", static_cast<int>(finish)));
  }
}

v1::TokenLogprobs ToProto(const TokenLogprobs& logprobs) {
  v1::TokenLogprobs proto;
  proto.set_logprob(logprobs.logprob);
  for (const auto& [id, logprob] : logprobs.top) {
    v1::TopLogprob* top = proto.add_top();
    top->set_id(id);
    top->set_logprob(logprob);
  }
  return proto;
}

TokenLogprobs FromProto(const v1::TokenLogprobs& proto) {
  TokenLogprobs logprobs;
  logprobs.logprob = proto.logprob();
  logprobs.top.reserve(proto.top_size());
  for (const v1::TopLogprob& top : proto.top()) {
    logprobs.top.emplace_back(top.id(), top.logprob());
  }
  return logprobs;
}

v1::FrameToken ToProto(const FrameToken& token) {
  v1::FrameToken proto;
  proto.set_id(token.id);
  proto.set_text(token.text);
  const TokenLogprobs& logprobs = token.logprobs;
  if (logprobs.logprob != 0 || !logprobs.top.empty()) {
    *proto.mutable_logprobs() = ToProto(logprobs);
  }
  return proto;
}

FrameToken FromProto(v1::FrameToken* proto) {
  FrameToken token;
  token.id = proto->id();
  token.text = std::move(*proto->mutable_text());
  token.logprobs = FromProto(proto->logprobs());
  return token;
}

v1::PromptLogprobs ToProto(const PromptLogprobs& prompt) {
  v1::PromptLogprobs proto;
  proto.set_first_index(prompt.first_index);
  for (const TokenLogprobs& token : prompt.tokens) {
    *proto.add_tokens() = ToProto(token);
  }
  return proto;
}

absl::StatusOr<PromptLogprobs> FromProto(const v1::PromptLogprobs& proto) {
  PromptLogprobs prompt;
  ASSIGN_OR_RETURN(prompt.first_index,
                   WireCount("frame.prompt.first_index", proto.first_index()));
  RETURN_IF_ERROR(
      WireCount("frame.prompt.tokens", proto.tokens_size()).status());
  prompt.tokens.reserve(proto.tokens_size());
  for (const v1::TokenLogprobs& token : proto.tokens()) {
    prompt.tokens.push_back(FromProto(token));
  }
  return prompt;
}

v1::Usage ToProto(const Usage& usage) {
  v1::Usage proto;
  proto.set_prompt_tokens(usage.prompt_tokens);
  proto.set_cached_tokens(usage.cached_tokens);
  proto.set_completion_tokens(usage.completion_tokens);
  return proto;
}

absl::StatusOr<Usage> FromProto(const v1::Usage& proto) {
  Usage usage;
  ASSIGN_OR_RETURN(usage.prompt_tokens,
                   WireCount("usage.prompt_tokens", proto.prompt_tokens()));
  ASSIGN_OR_RETURN(usage.cached_tokens,
                   WireCount("usage.cached_tokens", proto.cached_tokens()));
  ASSIGN_OR_RETURN(
      usage.completion_tokens,
      WireCount("usage.completion_tokens", proto.completion_tokens()));
  return usage;
}

v1::TransferSummary ToProto(const TransferSummary& transfer) {
  v1::TransferSummary proto;
  proto.set_transport(transfer.transport);
  proto.set_bytes_moved(transfer.bytes_moved);
  proto.set_blocks_moved(transfer.blocks_moved);
  proto.set_blocks_shared(transfer.blocks_shared);
  proto.set_decode_prompt_tokens(transfer.decode_prompt_tokens);
  return proto;
}

TransferSummary FromProto(const v1::TransferSummary& proto) {
  TransferSummary transfer;
  transfer.transport = proto.transport();
  transfer.bytes_moved = proto.bytes_moved();
  transfer.blocks_moved = proto.blocks_moved();
  transfer.blocks_shared = proto.blocks_shared();
  transfer.decode_prompt_tokens = proto.decode_prompt_tokens();
  return transfer;
}

}  // namespace

v1::Timings ToProto(const RequestTimings& timings) {
  v1::Timings proto;
  proto.set_queue_us(ToWireMicros(timings.queue));
  proto.set_prefill_us(ToWireMicros(timings.prefill));
  proto.set_transfer_us(ToWireMicros(timings.transfer));
  proto.set_first_token_us(ToWireMicros(timings.first_token));
  proto.set_decode_us(ToWireMicros(timings.decode));
  return proto;
}

absl::StatusOr<RequestTimings> FromProto(const v1::Timings& proto) {
  RequestTimings timings;
  ASSIGN_OR_RETURN(timings.queue,
                   WireMicros("timings.queue_us", proto.queue_us()));
  ASSIGN_OR_RETURN(timings.prefill,
                   WireMicros("timings.prefill_us", proto.prefill_us()));
  ASSIGN_OR_RETURN(timings.transfer,
                   WireMicros("timings.transfer_us", proto.transfer_us()));
  ASSIGN_OR_RETURN(timings.first_token, WireMicros("timings.first_token_us",
                                                   proto.first_token_us()));
  ASSIGN_OR_RETURN(timings.decode,
                   WireMicros("timings.decode_us", proto.decode_us()));
  return timings;
}

v1::TokenFrame ToProto(const TokenFrame& frame) {
  v1::TokenFrame proto;
  proto.set_attempt(frame.attempt.value());
  proto.set_sample(frame.sample);
  proto.set_first_index(frame.first_index);
  for (const FrameToken& token : frame.tokens) {
    *proto.add_tokens() = ToProto(token);
  }
  if (!frame.prompt.tokens.empty()) {
    *proto.mutable_prompt() = ToProto(frame.prompt);
  }
  proto.set_finish(ToProto(frame.finish));
  proto.set_final_text(frame.final_text);
  if (frame.finish != FinishReason::kNone) {
    *proto.mutable_usage() = ToProto(frame.usage);
    *proto.mutable_timings() = ToProto(frame.timings);
    *proto.mutable_transfer() = ToProto(frame.transfer);
  }
  return proto;
}

absl::StatusOr<TokenFrame> FromProto(v1::TokenFrame proto) {
  TokenFrame frame;
  frame.attempt = AttemptId(proto.attempt());
  ASSIGN_OR_RETURN(frame.sample, WireCount("frame.sample", proto.sample()));
  ASSIGN_OR_RETURN(frame.first_index,
                   WireCount("frame.first_index", proto.first_index()));
  RETURN_IF_ERROR(WireCount("frame.tokens", proto.tokens_size()).status());
  frame.tokens.reserve(proto.tokens_size());
  for (v1::FrameToken& token : *proto.mutable_tokens()) {
    frame.tokens.push_back(FromProto(&token));
  }
  ASSIGN_OR_RETURN(frame.prompt, FromProto(proto.prompt()));
  ASSIGN_OR_RETURN(frame.finish, FromProto(proto.finish()));
  frame.final_text = std::move(*proto.mutable_final_text());
  ASSIGN_OR_RETURN(frame.usage, FromProto(proto.usage()));
  ASSIGN_OR_RETURN(frame.timings, FromProto(proto.timings()));
  frame.transfer = FromProto(proto.transfer());
  return frame;
}

}  // namespace penstock
