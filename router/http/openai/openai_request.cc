#include "router/http/openai/openai_request.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/peer/error_reason.h"
#include "router/http/openai/body_fields.h"
#include "router/http/openai/chat_fields.h"
#include "router/http/openai/json_body.h"
#include "router/http/openai/sampling_fields.h"

namespace penstock {
namespace {

constexpr size_t kMaxName = 256;
constexpr size_t kMaxText = size_t{64} << 20;
constexpr size_t kMaxPrompts = 256;

void ReadStreaming(BodyFields& fields, AnswerOptions& answer) {
  answer.stream = fields.Bool("stream", false);
  answer.return_token_ids = fields.Bool("return_token_ids", false);
  answer.prompt_logprobs = fields.Find("prompt_logprobs") != nullptr;
  if (answer.prompt_logprobs && answer.stream) {
    fields.FailAt("prompt_logprobs", "is for stream: false only");
  }
  const ApiJson* options = fields.Find("stream_options");
  if (options == nullptr) return;
  if (!options->is_object()) {
    fields.FailAt("stream_options", "must be an object");
  } else if (!answer.stream) {
    fields.FailAt("stream_options", "is for stream: true only");
  } else {
    BodyFields inner(*options, "stream_options.");
    answer.include_usage = inner.Bool("include_usage", false);
    fields.Fail(inner.status());
  }
}

void ReadMaxTokens(BodyFields& fields, OpenAiRequest& request) {
  // The newer name wins.
  for (const char* name : {"max_completion_tokens", "max_tokens"}) {
    if (fields.Find(name) == nullptr) continue;
    const int tokens = fields.Int(name, 1);
    if (tokens < 0) {
      fields.FailAt(name,
                    absl::StrCat("is ", tokens, "; it must be 1 or more"));
    }
    request.client.request.stop.max_tokens = tokens;
    request.answer.score_only = tokens == 0;
    request.has_max_tokens = true;
    return;
  }
}

void ReadChatLogprobs(BodyFields& fields, OpenAiRequest& request) {
  AnswerOptions& answer = request.answer;
  answer.logprobs = fields.Bool("logprobs", false);
  answer.top_logprobs = fields.Int("top_logprobs", 0);
  if (fields.Find("top_logprobs") != nullptr && !answer.logprobs) {
    fields.FailAt("top_logprobs", "is for logprobs: true only");
  } else if (answer.top_logprobs < 0) {
    fields.FailAt("top_logprobs", absl::StrCat("is ", answer.top_logprobs,
                                               "; it must be 0 or more"));
  }
  if (answer.logprobs) {
    request.client.request.sampling.logprobs = answer.top_logprobs;
  }
}

void RefuseToolsAndMedia(BodyFields& fields) {
  constexpr absl::string_view kTools =
      "is not served here yet: the model answers in text; leave it out";
  for (const char* name : {"tools", "functions"})
    fields.RefuseSet(name, kTools);
  for (const char* name : {"tool_choice", "function_call"}) {
    const ApiJson* choice = fields.Find(name);
    // "none" asks for what happens anyway, and so does "auto" without tools.
    if (choice != nullptr && *choice != "none" && *choice != "auto") {
      fields.RefuseSet(name, kTools);
    }
  }
  constexpr absl::string_view kMedia =
      "is not served here: answers are text; leave it out";
  for (const char* name : {"audio", "web_search_options", "prediction"}) {
    fields.RefuseSet(name, kMedia);
  }
  const ApiJson* modalities = fields.Find("modalities");
  if (modalities != nullptr && *modalities != ApiJson::array({"text"})) {
    fields.RefuseSet("modalities", kMedia);
  }
}

// A completion's prompt: text, texts, token ids, or lists of those.
std::vector<PromptInput> ReadPrompts(BodyFields& fields) {
  std::vector<PromptInput> prompts;
  const ApiJson* prompt = fields.Find("prompt");
  if (prompt == nullptr || (prompt->is_array() && prompt->empty())) {
    fields.Fail(MakeError(ErrorReason::kPromptEmpty,
                          "prompt must be text, token ids, or a list of either",
                          "prompt"));
    return prompts;
  }
  if (!prompt->is_array()) {
    prompts.emplace_back(fields.String("prompt", kMaxText));
    return prompts;
  }
  if ((*prompt)[0].is_number()) {
    prompts.emplace_back(fields.Tokens("prompt"));
    return prompts;
  }
  if (prompt->size() > kMaxPrompts) {
    fields.FailAt("prompt", absl::StrCat("has ", prompt->size(), " prompts; ",
                                         kMaxPrompts, " are allowed"));
    return prompts;
  }
  for (const ApiJson& one : *prompt) {
    if (one.is_string()) {
      prompts.emplace_back(one.get<std::string>());
      continue;
    }
    absl::StatusOr<std::vector<TokenId>> ids =
        TokensOf(one, absl::StrCat("prompt[", prompts.size(), "]"));
    fields.Fail(ids.status());
    if (!ids.ok()) return prompts;
    prompts.emplace_back(*std::move(ids));
  }
  return prompts;
}

void ReadCompletionLogprobs(BodyFields& fields, OpenAiRequest& request) {
  AnswerOptions& answer = request.answer;
  answer.echo = fields.Bool("echo", false);
  if (fields.Find("logprobs") == nullptr) return;
  answer.logprobs = true;
  answer.top_logprobs = fields.Int("logprobs", 0);
  if (answer.top_logprobs < 0) {
    fields.FailAt("logprobs", absl::StrCat("is ", answer.top_logprobs,
                                           "; it must be 0 or more"));
  }
  request.client.request.sampling.logprobs = answer.top_logprobs;
  if (answer.echo) {
    int& prompt_logprobs = request.client.request.prompt_logprobs;
    prompt_logprobs = std::max(prompt_logprobs, answer.top_logprobs);
  }
}

void ReadBestOf(BodyFields& fields, OpenAiRequest& request) {
  GenerateRequest& generate = request.client.request;
  if (generate.beam.width > 0) {
    generate.beam.width = fields.Int("best_of", generate.beam.width);
    if (generate.beam.width < 1) {
      fields.FailAt("best_of", absl::StrCat("is ", generate.beam.width,
                                            "; it must be 1 or more"));
    }
    return;
  }
  const int best_of = fields.Int("best_of", generate.n);
  if (best_of < generate.n) {
    fields.FailAt("best_of", absl::StrCat("is ", best_of, "; it must be n (",
                                          generate.n, ") or more"));
  }
  // As many as are given back need no choice.
  generate.best_of = best_of > generate.n ? best_of : 0;
}

}  // namespace

absl::StatusOr<OpenAiRequest> ParseChatRequest(absl::string_view body) {
  ASSIGN_OR_RETURN(const ApiJson json, ParseJsonBody(body));
  BodyFields fields(json);
  OpenAiRequest request;
  request.answer.kind = AnswerKind::kChat;
  RefuseToolsAndMedia(fields);
  request.client = ReadSharedFields(fields);
  request.prompts.emplace_back(ReadChat(fields));
  ReadStreaming(fields, request.answer);
  ReadMaxTokens(fields, request);
  ReadChatLogprobs(fields, request);
  RETURN_IF_ERROR(fields.status());
  return request;
}

absl::StatusOr<OpenAiRequest> ParseCompletionRequest(absl::string_view body) {
  ASSIGN_OR_RETURN(const ApiJson json, ParseJsonBody(body));
  BodyFields fields(json);
  OpenAiRequest request;
  request.answer.kind = AnswerKind::kCompletion;
  fields.RefuseSet("suffix",
                   "is not served here: the model writes on from the prompt; "
                   "leave it out");
  request.client = ReadSharedFields(fields);
  request.prompts = ReadPrompts(fields);
  ReadStreaming(fields, request.answer);
  ReadMaxTokens(fields, request);
  ReadCompletionLogprobs(fields, request);
  ReadBestOf(fields, request);
  RETURN_IF_ERROR(fields.status());
  return request;
}

absl::StatusOr<TokenizeCall> ParseTokenizeRequest(absl::string_view body) {
  ASSIGN_OR_RETURN(const ApiJson json, ParseJsonBody(body));
  BodyFields fields(json);
  TokenizeCall call;
  call.model = fields.String("model", kMaxName);
  call.return_token_texts = fields.Bool("return_token_strs", false);
  call.add_special_tokens = fields.Bool("add_special_tokens", true);
  if (fields.Find("messages") != nullptr) {
    call.input = ReadChat(fields);
  } else if (fields.Find("prompt") != nullptr) {
    call.input = fields.String("prompt", kMaxText);
  } else {
    fields.FailAt("prompt", "is missing; give prompt or messages");
  }
  RETURN_IF_ERROR(fields.status());
  return call;
}

absl::StatusOr<DetokenizeCall> ParseDetokenizeRequest(absl::string_view body) {
  ASSIGN_OR_RETURN(const ApiJson json, ParseJsonBody(body));
  BodyFields fields(json);
  if (fields.Find("tokens") == nullptr) {
    fields.FailAt("tokens", "is missing; give a list of token ids");
  }
  DetokenizeCall call{fields.String("model", kMaxName),
                      fields.Tokens("tokens")};
  RETURN_IF_ERROR(fields.status());
  return call;
}

}  // namespace penstock
