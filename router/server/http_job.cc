#include "router/server/http_job.h"

#include <algorithm>
#include <limits>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "common/base/status_macros.h"
#include "common/peer/error_reason.h"

namespace penstock {
namespace {

// What OpenAI says a completion without max_tokens gets.
constexpr int kCompletionTokens = 16;
// Log-probabilities of prompts in one answer: some 100 MiB of JSON.
constexpr int64_t kMaxScores = int64_t{1} << 20;

// Each choice repeats those of its prompt.
int64_t ScoresOf(const GenerateRequest& request) {
  return int64_t{request.n} * (request.prompt_logprobs + 1) *
         static_cast<int64_t>(request.prompt.size());
}

absl::StatusOr<std::string> EchoOf(const RequestEncoder& encoder,
                                   const PromptInput& prompt,
                                   const std::vector<TokenId>& ids) {
  if (const auto* text = std::get_if<std::string>(&prompt)) return *text;
  return encoder.Decode(ids, "prompt");
}

}  // namespace

absl::StatusOr<HttpJob> EncodeHttpJob(const RequestEncoder& encoder,
                                      AnswerKind kind, const CallInfo& call,
                                      const std::string& tenant,
                                      absl::string_view body) {
  const bool chat = kind == AnswerKind::kChat;
  ASSIGN_OR_RETURN(OpenAiRequest parsed, chat ? ParseChatRequest(body)
                                              : ParseCompletionRequest(body));
  parsed.client.request.tenant = tenant;
  StopConditions& stop = parsed.client.request.stop;
  if (!parsed.has_max_tokens) {
    stop.max_tokens =
        chat ? std::numeric_limits<int>::max() : kCompletionTokens;
  }
  HttpJob job;
  int64_t scores = 0;
  job.answer.samples = parsed.client.request.n;
  job.answer.stop_ids = stop.stop_ids;
  for (PromptInput& prompt : parsed.prompts) {
    ClientRequest client = parsed.client;
    client.prompt = prompt;
    ASSIGN_OR_RETURN(client, encoder.Encode(call, std::move(client)));
    GenerateRequest& request = client.request;
    const int room =
        encoder.info().context_length - static_cast<int>(request.prompt.size());
    request.stop.max_tokens = std::min(request.stop.max_tokens, room);
    request.stop.min_tokens = std::min(request.stop.min_tokens, room);
    scores += ScoresOf(request);
    if (scores > kMaxScores) {
      return MakeError(
          ErrorReason::kInvalidField,
          absl::StrCat("log-probabilities of the prompt, for each answer, are "
                       "over ",
                       kMaxScores, " in all; ask for fewer"),
          "prompt_logprobs");
    }
    AnswerWriter::Prompt answered{request.prompt, ""};
    if (parsed.answer.echo) {
      ASSIGN_OR_RETURN(answered.text, EchoOf(encoder, prompt, request.prompt));
    }
    job.answer.prompts.push_back(std::move(answered));
    job.requests.push_back(std::move(client));
  }
  job.answer.answer = parsed.answer;
  job.answer.id = absl::StrCat(chat ? "chatcmpl-" : "cmpl-", call.request_id);
  job.answer.model = encoder.info().model;
  job.answer.fingerprint =
      absl::StrFormat("fp_%016x", encoder.info().content.value());
  job.answer.created = absl::ToUnixSeconds(absl::Now());
  return job;
}

}  // namespace penstock
