#include "tools/penstock/completion.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace penstock {
namespace {

using Json = nlohmann::json;

// More samples than any request may ask for: a server's frame is not trusted
// with our memory.
constexpr uint32_t kMaxSamples = 1024;

Json FinishName(v1::FinishReason finish) {
  switch (finish) {
    case v1::FINISH_REASON_STOP:
      return "stop";
    case v1::FINISH_REASON_LENGTH:
      return "length";
    default:
      return nullptr;
  }
}

Json ToJson(const v1::TokenLogprobs& logprobs) {
  Json top = Json::array();
  for (const v1::TopLogprob& entry : logprobs.top()) {
    top.push_back({{"id", entry.id()}, {"logprob", entry.logprob()}});
  }
  return {{"logprob", logprobs.logprob()}, {"top", std::move(top)}};
}

Json LogprobsToJson(const v1::FrameToken& token) {
  Json json = ToJson(token.logprobs());
  json["id"] = token.id();
  return json;
}

double Milliseconds(int64_t microseconds) { return microseconds / 1000.0; }

Json UsageToJson(const v1::Usage& usage) {
  return {{"prompt_tokens", usage.prompt_tokens()},
          {"cached_tokens", usage.cached_tokens()},
          {"completion_tokens", usage.completion_tokens()}};
}

Json TimingsToJson(const v1::Timings& timings) {
  return {{"queue", Milliseconds(timings.queue_us())},
          {"prefill", Milliseconds(timings.prefill_us())},
          {"transfer", Milliseconds(timings.transfer_us())},
          {"first_token", Milliseconds(timings.first_token_us())},
          {"decode", Milliseconds(timings.decode_us())}};
}

void AddTransfer(const v1::TransferSummary& transfer, Json* placement) {
  (*placement)["transport"] = transfer.transport();
  (*placement)["bytes_moved"] = transfer.bytes_moved();
  (*placement)["blocks_moved"] = transfer.blocks_moved();
  (*placement)["blocks_shared"] = transfer.blocks_shared();
  (*placement)["decode_prompt_tokens"] = transfer.decode_prompt_tokens();
}

}  // namespace

absl::StatusOr<std::string> Completion::Add(
    const v1::GenerateResponse& response) {
  if (!response.request_id().empty()) request_id_ = response.request_id();
  if (response.has_placement()) placement_ = response.placement();
  if (!response.has_frame()) return std::string();

  const v1::TokenFrame& frame = response.frame();
  if (frame.sample() >= kMaxSamples) {
    return absl::InternalError(
        absl::StrCat("a frame names sample ", frame.sample()));
  }
  if (frame.sample() >= choices_.size()) choices_.resize(frame.sample() + 1);
  Choice& choice = choices_[frame.sample()];
  if (choice.finish != v1::FINISH_REASON_NONE) {
    return absl::InternalError("a frame came after the last one");
  }
  if (frame.first_index() != choice.tokens.size()) {
    return absl::DataLossError(
        absl::StrCat("a frame begins at token ", frame.first_index(), " where ",
                     choice.tokens.size(), " was expected"));
  }
  if (absl::Status s = AddPrompt(frame.prompt()); !s.ok()) return s;
  std::string shown;
  for (const v1::FrameToken& token : frame.tokens()) {
    choice.tokens.push_back(token);
    shown += token.text();
  }
  shown += frame.final_text();
  choice.text += shown;
  if (frame.finish() != v1::FINISH_REASON_NONE) {
    choice.finish = frame.finish();
    usage_ = frame.usage();
    timings_ = frame.timings();
    transfer_ = frame.transfer();
  }
  return shown;
}

absl::Status Completion::AddPrompt(const v1::PromptLogprobs& prompt) {
  if (prompt.tokens().empty()) return absl::OkStatus();
  // The prompt's first token has none.
  const size_t next = prompt_logprobs_.size() + 1;
  if (prompt.first_index() != next) {
    return absl::DataLossError(
        absl::StrCat("log-probabilities begin at prompt token ",
                     prompt.first_index(), " where ", next, " was expected"));
  }
  prompt_logprobs_.insert(prompt_logprobs_.end(), prompt.tokens().begin(),
                          prompt.tokens().end());
  return absl::OkStatus();
}

absl::Status Completion::CheckFinished() const {
  for (const Choice& choice : choices_) {
    if (choice.finish == v1::FINISH_REASON_NONE) {
      return absl::InternalError("the stream ended before its last frame");
    }
  }
  return absl::OkStatus();
}

int Completion::tokens() const {
  size_t count = 0;
  for (const Choice& choice : choices_) count += choice.tokens.size();
  return static_cast<int>(count);
}

std::string Completion::Describe() const {
  std::string line = absl::StrFormat(
      "%d prompt tokens (%d cached), %d written; ", usage_.prompt_tokens(),
      usage_.cached_tokens(), usage_.completion_tokens());
  if (placement_.prefill().empty()) {
    absl::StrAppend(&line, placement_.decode(), " alone");
  } else {
    absl::StrAppendFormat(&line, "%s -> %s by %s, %d KV bytes moved",
                          placement_.prefill(), placement_.decode(),
                          transfer_.transport(), transfer_.bytes_moved());
  }
  absl::StrAppendFormat(&line, "; first token after %.0f ms",
                        Milliseconds(timings_.first_token_us()));
  if (timings_.decode_us() > 0 && usage_.completion_tokens() > 1) {
    absl::StrAppendFormat(
        &line, ", then %.0f tokens/s",
        (usage_.completion_tokens() - 1) * 1e6 / timings_.decode_us());
  }
  return line;
}

Json Completion::ToJson() const {
  Json choices = Json::array();
  for (const Choice& choice : choices_) {
    Json ids = Json::array();
    Json logprobs = Json::array();
    for (const v1::FrameToken& token : choice.tokens) {
      ids.push_back(token.id());
      if (token.has_logprobs()) logprobs.push_back(LogprobsToJson(token));
    }
    choices.push_back({{"text", choice.text},
                       {"token_ids", std::move(ids)},
                       {"logprobs", std::move(logprobs)},
                       {"finish_reason", FinishName(choice.finish)}});
  }
  Json placement = {{"prefill", placement_.prefill()},
                    {"decode", placement_.decode()}};
  AddTransfer(transfer_, &placement);
  Json json = {{"choices", std::move(choices)},
               {"usage", UsageToJson(usage_)},
               {"timings_ms", TimingsToJson(timings_)},
               {"placement", std::move(placement)},
               {"request_id", request_id_}};
  if (!prompt_logprobs_.empty()) {
    Json& prompt = json["prompt_logprobs"] = {nullptr};
    for (const v1::TokenLogprobs& token : prompt_logprobs_) {
      prompt.push_back(penstock::ToJson(token));
    }
  }
  return json;
}

Json FrameToJson(const v1::GenerateResponse& response) {
  const v1::TokenFrame& frame = response.frame();
  Json tokens = Json::array();
  for (const v1::FrameToken& token : frame.tokens()) {
    Json one = {{"id", token.id()}, {"text", token.text()}};
    if (token.has_logprobs()) one.update(LogprobsToJson(token));
    tokens.push_back(std::move(one));
  }
  Json json = {{"sample", frame.sample()},
               {"first_index", frame.first_index()},
               {"tokens", std::move(tokens)},
               {"finish_reason", FinishName(frame.finish())}};
  if (response.has_placement()) {
    json["placement"] = {{"prefill", response.placement().prefill()},
                         {"decode", response.placement().decode()}};
  }
  if (frame.has_prompt()) {
    Json& prompt = json["prompt_logprobs"];
    prompt = {{"first_index", frame.prompt().first_index()},
              {"tokens", Json::array()}};
    for (const v1::TokenLogprobs& token : frame.prompt().tokens()) {
      prompt["tokens"].push_back(ToJson(token));
    }
  }
  if (!response.request_id().empty()) {
    json["request_id"] = response.request_id();
  }
  if (frame.finish() != v1::FINISH_REASON_NONE) {
    json["final_text"] = frame.final_text();
    json["usage"] = UsageToJson(frame.usage());
    json["timings_ms"] = TimingsToJson(frame.timings());
    AddTransfer(frame.transfer(), &json["transfer"]);
  }
  return json;
}

}  // namespace penstock
