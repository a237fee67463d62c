#include "router/http/openai/answer_writer.h"

#include <algorithm>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"

namespace penstock {
namespace {

constexpr absl::string_view kDone = "data: [DONE]\n\n";

ApiJson FinishName(FinishReason finish) {
  switch (finish) {
    case FinishReason::kNone:
      return nullptr;
    case FinishReason::kStop:
      return "stop";
    case FinishReason::kLength:
      return "length";
  }
  return nullptr;
}

std::string AllText(const TokenFrame& frame) {
  std::string text;
  for (const FrameToken& token : frame.tokens) text += token.text;
  return text + frame.final_text;
}

bool IdsAreKnown(const TokenFrame& frame, int vocab_size) {
  auto known = [&](TokenId id) { return id >= 0 && id < vocab_size; };
  auto all_known = [&](const TokenLogprobs& logprobs) {
    return absl::c_all_of(logprobs.top,
                          [&](const auto& best) { return known(best.first); });
  };
  return absl::c_all_of(frame.tokens,
                        [&](const FrameToken& token) {
                          return known(token.id) && all_known(token.logprobs);
                        }) &&
         absl::c_all_of(frame.prompt.tokens, all_known);
}

// Leaves what says that the answer has ended.
void Empty(TokenFrame& frame) {
  frame.tokens.clear();
  frame.final_text.clear();
  frame.usage.completion_tokens = 0;
  if (frame.finish != FinishReason::kNone) frame.finish = FinishReason::kLength;
}

}  // namespace

AnswerWriter::AnswerWriter(Options options, const Tokenizer* tokenizer)
    : options_(std::move(options)),
      tokenizer_(tokenizer),
      usages_(options_.prompts.size()),
      prompt_logprobs_(options_.prompts.size()) {
  for (size_t prompt = 0; prompt < options_.prompts.size(); ++prompt) {
    for (int sample = 0; sample < options_.samples; ++sample) {
      choices_.push_back(
          {.index = static_cast<int>(choices_.size()),
           .prompt = static_cast<int>(prompt),
           .completion = {tokenizer_, options_.answer.top_logprobs}});
    }
  }
  const std::string head = DumpJson(
      {{"id", options_.id},
       {"object", chat() ? "chat.completion.chunk" : "text_completion"},
       {"created", options_.created},
       {"model", options_.model},
       {"system_fingerprint", options_.fingerprint}});
  event_head_ =
      absl::StrCat("data: ", absl::string_view(head).substr(0, head.size() - 1),
                   ",\"choices\":[");
}

bool AnswerWriter::IsStop(TokenId id) const {
  return absl::c_linear_search(tokenizer_->stop_tokens(), id) ||
         absl::c_linear_search(options_.stop_ids, id);
}

absl::StatusOr<std::string> AnswerWriter::Add(int prompt, TokenFrame frame) {
  if (prompt < 0 || static_cast<size_t>(prompt) >= usages_.size() ||
      frame.sample < 0 || frame.sample >= options_.samples) {
    return absl::InternalError(absl::StrCat("a frame of prompt ", prompt,
                                            ", sample ", frame.sample,
                                            ", which nobody asked for"));
  }
  if (!IdsAreKnown(frame, tokenizer_->vocab_size())) {
    return absl::InternalError("a frame names a token that the model lacks");
  }
  if (options_.answer.score_only) Empty(frame);
  if (frame.usage.prompt_tokens > 0) usages_[prompt] = frame.usage;
  std::vector<TokenLogprobs>& of_prompt = prompt_logprobs_[prompt];
  of_prompt.insert(of_prompt.end(), frame.prompt.tokens.begin(),
                   frame.prompt.tokens.end());
  Choice& choice = choices_[prompt * options_.samples + frame.sample];
  if (frame.tokens.empty() && frame.finish == FinishReason::kNone) return "";
  Keep(choice, frame);
  if (streams()) return Events(choice, AllText(frame));
  choice.text += AllText(frame);
  return "";
}

void AnswerWriter::Keep(Choice& choice, const TokenFrame& frame) {
  choice.finish = frame.finish;
  if (!options_.answer.logprobs && !options_.answer.return_token_ids) return;
  choice.tokens.insert(choice.tokens.end(), frame.tokens.begin(),
                       frame.tokens.end());
  // What ended the answer is no part of it.
  if (frame.finish == FinishReason::kStop && !choice.tokens.empty() &&
      IsStop(choice.tokens.back().id)) {
    choice.tokens.pop_back();
  }
}

std::string AnswerWriter::Event(const ApiJson& choice) const {
  return EventOf(DumpJson(choice));
}

std::string AnswerWriter::TextEvent(const Choice& choice,
                                    const std::string& text) const {
  // Most events are this one: a document of its own for each costs more than
  // all else that is done with a token.
  const std::string quoted = DumpJson(text);
  const std::string content =
      chat() ? absl::StrCat("\"delta\":{\"content\":", quoted, "}")
             : absl::StrCat("\"text\":", quoted);
  return EventOf(absl::StrCat("{\"index\":", choice.index, ",", content,
                              ",\"logprobs\":null,\"finish_reason\":null}"));
}

std::string AnswerWriter::EventOf(absl::string_view choice) const {
  return absl::StrCat(
      event_head_, choice,
      options_.answer.include_usage ? "],\"usage\":null}\n\n" : "]}\n\n");
}

void AnswerWriter::WriteTokens(Choice& choice, ApiJson& json) {
  const AnswerOptions& answer = options_.answer;
  const std::vector<FrameToken> tokens = std::exchange(choice.tokens, {});
  json["logprobs"] = nullptr;
  if (answer.logprobs && chat()) {
    if (!tokens.empty()) {
      json["logprobs"] = ChatLogprobs(*tokenizer_, tokens, answer.top_logprobs);
    }
  } else if (answer.logprobs) {
    for (const FrameToken& token : tokens) {
      choice.completion.Add(token.id, &token.logprobs);
    }
    json["logprobs"] = choice.completion.Take();
  }
  if (!answer.return_token_ids) return;
  ApiJson ids = ApiJson::array();
  for (const FrameToken& token : tokens) ids.push_back(token.id);
  json["token_ids"] = std::move(ids);
}

void AnswerWriter::BeginEcho(Choice& choice, std::string* text) {
  const Prompt& prompt = options_.prompts[choice.prompt];
  if (!options_.answer.echo) return;
  *text = absl::StrCat(prompt.text, *text);
  const std::vector<TokenLogprobs>& logprobs = prompt_logprobs_[choice.prompt];
  if (!options_.answer.logprobs) return;
  for (size_t i = 0; i < prompt.ids.size(); ++i) {
    const bool known = i > 0 && i - 1 < logprobs.size();
    choice.completion.Add(prompt.ids[i], known ? &logprobs[i - 1] : nullptr);
  }
}

std::string AnswerWriter::Events(Choice& choice, std::string text) {
  const bool first = !std::exchange(choice.begun, true);
  if (first) BeginEcho(choice, &text);
  const bool ends = choice.finish != FinishReason::kNone;
  std::string events;
  if (!first && !options_.answer.logprobs &&
      !options_.answer.return_token_ids) {
    if (!text.empty()) events = TextEvent(choice, text);
  } else if (!text.empty() || !choice.tokens.empty() || (first && chat())) {
    ApiJson json = {{"index", choice.index}};
    if (chat()) {
      json["delta"] = ApiJson::object();
      if (first) json["delta"]["role"] = "assistant";
      json["delta"]["content"] = std::move(text);
    } else {
      json["text"] = std::move(text);
    }
    WriteTokens(choice, json);
    if (first && options_.answer.return_token_ids) {
      json["prompt_token_ids"] = options_.prompts[choice.prompt].ids;
    }
    json["finish_reason"] = nullptr;
    events = Event(json);
  }
  if (!ends) return events;
  ApiJson last = {{"index", choice.index}};
  if (chat()) {
    last["delta"] = ApiJson::object();
  } else {
    last["text"] = "";
  }
  last["logprobs"] = nullptr;
  last["finish_reason"] = FinishName(choice.finish);
  return events + Event(last);
}

ApiJson AnswerWriter::UsageJson() const {
  Usage sum;
  for (const Usage& usage : usages_) {
    sum.prompt_tokens += usage.prompt_tokens;
    sum.cached_tokens += usage.cached_tokens;
    sum.completion_tokens += usage.completion_tokens;
  }
  return {{"prompt_tokens", sum.prompt_tokens},
          {"completion_tokens", sum.completion_tokens},
          {"total_tokens", sum.prompt_tokens + sum.completion_tokens},
          {"prompt_tokens_details", {{"cached_tokens", sum.cached_tokens}}}};
}

ApiJson AnswerWriter::DocumentChoice(Choice& choice) {
  const std::vector<TokenId>& ids = options_.prompts[choice.prompt].ids;
  BeginEcho(choice, &choice.text);
  ApiJson json = {{"index", choice.index}};
  if (chat()) {
    json["message"] = {{"role", "assistant"},
                       {"content", std::move(choice.text)},
                       {"refusal", nullptr}};
  } else {
    json["text"] = std::move(choice.text);
  }
  WriteTokens(choice, json);
  json["finish_reason"] = FinishName(choice.finish);
  if (options_.answer.return_token_ids) json["prompt_token_ids"] = ids;
  if (options_.answer.prompt_logprobs) {
    json["prompt_logprobs"] =
        PromptLogprobsJson(*tokenizer_, ids, prompt_logprobs_[choice.prompt]);
  }
  return json;
}

ApiJson AnswerWriter::Document() {
  ApiJson choices = ApiJson::array();
  for (Choice& choice : choices_) choices.push_back(DocumentChoice(choice));
  return {{"id", options_.id},
          {"object", chat() ? "chat.completion" : "text_completion"},
          {"created", options_.created},
          {"model", options_.model},
          {"system_fingerprint", options_.fingerprint},
          {"choices", std::move(choices)},
          {"usage", UsageJson()}};
}

std::string AnswerWriter::Finish() {
  if (!streams()) return DumpJson(Document());
  if (!options_.answer.include_usage) return std::string(kDone);
  return absl::StrCat(event_head_, "],\"usage\":", DumpJson(UsageJson()),
                      "}\n\n", kDone);
}

std::string ErrorEvent(const ApiJson& error) {
  return absl::StrCat("data: ", DumpJson(error), "\n\n");
}

}  // namespace penstock
