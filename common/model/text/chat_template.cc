#include "common/model/text/chat_template.h"

#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/model/text/jinja/parser.h"
#include "common/model/text/jinja/renderer.h"
#include "common/model/utf8.h"

namespace penstock {
namespace {

constexpr absl::string_view kKnownRoles[] = {
    "assistant", "developer", "function", "ipython",
    "model",     "system",    "tool",     "user"};

jinja::Value MessageValue(const ChatMessage& message) {
  jinja::Dict dict;
  dict.items.emplace_back(
      jinja::Text("role", false),
      jinja::TextValue(message.role, !IsKnownRole(message.role)));
  dict.items.emplace_back(jinja::Text("content", false),
                          jinja::TextValue(message.content, true));
  return jinja::Value(std::move(dict));
}

class JinjaTemplate : public ChatTemplate {
 public:
  JinjaTemplate(jinja::Body body, SpecialTexts special)
      : body_(std::move(body)), special_(std::move(special)) {}

  absl::StatusOr<std::vector<Piece>> Render(
      absl::Span<const ChatMessage> messages,
      bool add_generation_prompt) const override {
    jinja::List list;
    for (size_t i = 0; i < messages.size(); ++i) {
      const std::string at = absl::StrCat("messages[", i, "]");
      RETURN_IF_ERROR(CheckUtf8(at + ".role", messages[i].role));
      RETURN_IF_ERROR(CheckUtf8(at + ".content", messages[i].content));
      list.items.push_back(MessageValue(messages[i]));
    }
    list.depth = 2;
    ASSIGN_OR_RETURN(
        const jinja::Text text,
        jinja::Render(body_, Globals(std::move(list), add_generation_prompt),
                      jinja::Limits()));
    std::vector<Piece> pieces;
    size_t begin = 0;
    for (const jinja::Text::Run& run : text.runs()) {
      pieces.push_back(
          {std::string(text.bytes().substr(begin, run.end - begin)),
           run.from_message});
      begin = run.end;
    }
    return pieces;
  }

 private:
  jinja::Scopes::Variables Globals(jinja::List messages,
                                   bool add_generation_prompt) const {
    jinja::Scopes::Variables globals;
    globals["messages"] = jinja::Value(std::move(messages));
    globals["add_generation_prompt"] = jinja::Value(add_generation_prompt);
    // Templates ask `if tools`; without any they are none, not undefined.
    globals["tools"] = jinja::Value();
    globals["documents"] = jinja::Value();
    if (!special_.bos_token.empty()) {
      globals["bos_token"] = jinja::TextValue(special_.bos_token);
    }
    if (!special_.eos_token.empty()) {
      globals["eos_token"] = jinja::TextValue(special_.eos_token);
    }
    return globals;
  }

  const jinja::Body body_;
  const SpecialTexts special_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<ChatTemplate>> ChatTemplate::Parse(
    absl::string_view source, SpecialTexts special) {
  RETURN_IF_ERROR(CheckUtf8("bos_token", special.bos_token));
  RETURN_IF_ERROR(CheckUtf8("eos_token", special.eos_token));
  ASSIGN_OR_RETURN(jinja::Body body, jinja::Parse(source));
  return std::make_unique<JinjaTemplate>(std::move(body), std::move(special));
}

bool IsKnownRole(absl::string_view role) {
  return absl::c_linear_search(kKnownRoles, role);
}

std::string JoinPieces(absl::Span<const ChatTemplate::Piece> pieces) {
  std::string text;
  for (const ChatTemplate::Piece& piece : pieces) text += piece.text;
  return text;
}

absl::StatusOr<std::vector<TokenId>> EncodePieces(
    absl::Span<const ChatTemplate::Piece> pieces, const Tokenizer& tokenizer) {
  std::vector<TextRun> runs;
  for (const ChatTemplate::Piece& piece : pieces) {
    runs.push_back({piece.text, piece.from_message ? SpecialTokens::kPlain
                                                   : SpecialTokens::kParse});
  }
  return tokenizer.EncodeRuns(runs);
}

}  // namespace penstock
