#include "router/http/openai/logprobs_json.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/model/utf8.h"

namespace penstock {
namespace {

// JSON has no infinity; this is what clients know for "impossible".
double Number(float logprob) {
  constexpr double kLowest = -9999.0;
  return std::isnan(logprob) ? kLowest : std::max<double>(logprob, kLowest);
}

ApiJson Bytes(absl::string_view text) {
  ApiJson bytes = ApiJson::array();
  for (const char byte : text) bytes.push_back(static_cast<uint8_t>(byte));
  return bytes;
}

ApiJson ChatEntry(const Tokenizer& tokenizer, TokenId id, float logprob) {
  return {{"token", TokenText(tokenizer, id)},
          {"logprob", Number(logprob)},
          {"bytes", Bytes(tokenizer.TokenBytes(id))}};
}

// Characters that begin in `bytes`.
size_t CharactersOf(absl::string_view bytes) {
  return static_cast<size_t>(std::count_if(
      bytes.begin(), bytes.end(),
      [](char byte) { return (static_cast<uint8_t>(byte) & 0xC0) != 0x80; }));
}

}  // namespace

std::string TokenText(const Tokenizer& tokenizer, TokenId id) {
  const absl::string_view bytes = tokenizer.TokenBytes(id);
  if (IsUtf8(bytes)) return std::string(bytes);
  std::string text = "bytes:";
  for (const char byte : bytes) {
    absl::StrAppendFormat(&text, "\\x%02x", static_cast<uint8_t>(byte));
  }
  return text;
}

ApiJson ChatLogprobs(const Tokenizer& tokenizer,
                     absl::Span<const FrameToken> tokens, int top) {
  ApiJson content = ApiJson::array();
  for (const FrameToken& token : tokens) {
    ApiJson entry = ChatEntry(tokenizer, token.id, token.logprobs.logprob);
    ApiJson alternatives = ApiJson::array();
    for (const auto& [id, logprob] : token.logprobs.top) {
      if (static_cast<int>(alternatives.size()) >= top) break;
      alternatives.push_back(ChatEntry(tokenizer, id, logprob));
    }
    entry["top_logprobs"] = std::move(alternatives);
    content.push_back(std::move(entry));
  }
  return {{"content", std::move(content)}, {"refusal", nullptr}};
}

void CompletionLogprobs::Add(TokenId id, const TokenLogprobs* logprobs) {
  const std::string text = TokenText(*tokenizer_, id);
  tokens_.push_back(text);
  offsets_.push_back(offset_);
  offset_ += CharactersOf(tokenizer_->TokenBytes(id));
  if (logprobs == nullptr) {
    logprobs_.push_back(nullptr);
    top_logprobs_.push_back(nullptr);
    return;
  }
  logprobs_.push_back(Number(logprobs->logprob));
  ApiJson top = ApiJson::object();
  int count = 0;
  for (const auto& [other, logprob] : logprobs->top) {
    if (count++ == top_) break;
    top[TokenText(*tokenizer_, other)] = Number(logprob);
  }
  // The chosen token is always among them.
  if (top_ > 0) top[text] = Number(logprobs->logprob);
  top_logprobs_.push_back(std::move(top));
}

ApiJson CompletionLogprobs::Take() {
  return {{"tokens", std::exchange(tokens_, ApiJson::array())},
          {"token_logprobs", std::exchange(logprobs_, ApiJson::array())},
          {"top_logprobs", std::exchange(top_logprobs_, ApiJson::array())},
          {"text_offset", std::exchange(offsets_, ApiJson::array())}};
}

ApiJson PromptLogprobsJson(const Tokenizer& tokenizer,
                           absl::Span<const TokenId> prompt,
                           absl::Span<const TokenLogprobs> logprobs) {
  auto entry = [&](TokenId id, float logprob) {
    return ApiJson{{"logprob", Number(logprob)},
                   {"decoded_token", TokenText(tokenizer, id)}};
  };
  ApiJson list = ApiJson::array({nullptr});
  for (size_t i = 0; i < logprobs.size() && i + 1 < prompt.size(); ++i) {
    ApiJson one = ApiJson::object();
    one[absl::StrCat(prompt[i + 1])] =
        entry(prompt[i + 1], logprobs[i].logprob);
    for (const auto& [id, logprob] : logprobs[i].top) {
      one.emplace(absl::StrCat(id), entry(id, logprob));
    }
    list.push_back(std::move(one));
  }
  return list;
}

}  // namespace penstock
