#include "common/model/text/chat_template.h"

#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/strip.h"
#include "common/base/status_macros.h"
#include "common/model/text/chat_variables.h"
#include "common/model/text/jinja/parser.h"
#include "common/model/text/jinja/renderer.h"
#include "common/model/utf8.h"

namespace penstock {
namespace {

constexpr absl::string_view kKnownRoles[] = {
    "assistant", "developer", "function", "ipython",
    "model",     "system",    "tool",     "user"};

// What a template that reads lists of parts writes of one, as it stands.
constexpr absl::string_view kProbe = "[probe of parts]";

class JinjaTemplate : public ChatTemplate {
 public:
  JinjaTemplate(jinja::Body body, SpecialTexts special)
      : body_(std::move(body)), special_(std::move(special)) {
    takes_parts_ = TakesParts();
  }

  absl::StatusOr<std::vector<Piece>> Render(
      absl::Span<const ChatMessage> messages,
      const ChatOptions& options) const override {
    ASSIGN_OR_RETURN(jinja::Text text,
                     RenderText(messages, options, takes_parts_));
    if (options.continue_final_message) {
      ASSIGN_OR_RETURN(text, CutAtTag(text));
    }
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
  absl::StatusOr<jinja::Text> RenderText(absl::Span<const ChatMessage> messages,
                                         const ChatOptions& options,
                                         bool takes_parts) const {
    ASSIGN_OR_RETURN(jinja::Scopes::Variables variables,
                     ChatVariables(messages, options, takes_parts));
    // A client's variable of the same name goes first.
    if (!special_.bos_token.empty()) {
      variables.emplace("bos_token", jinja::TextValue(special_.bos_token));
    }
    if (!special_.eos_token.empty()) {
      variables.emplace("eos_token", jinja::TextValue(special_.eos_token));
    }
    return jinja::Render(body_, std::move(variables), {options.now},
                         jinja::Limits());
  }

  // Whether the template reads content that is a list of parts: it writes a
  // part's text, and not the list as Python or JSON spell it.
  bool TakesParts() const {
    const ChatMessage probe = {"user", "", {std::string(kProbe)}};
    const auto text = RenderText({probe}, ChatOptions(), true);
    return text.ok() && absl::StrContains(text->bytes(), kProbe) &&
           !absl::StrContains(text->bytes(), "'text'") &&
           !absl::StrContains(text->bytes(), "\"text\"");
  }

  // The text up to the end of the last message's content.
  static absl::StatusOr<jinja::Text> CutAtTag(const jinja::Text& text) {
    const absl::string_view bare = absl::StripSuffix(kContinueTag, " ");
    const size_t at = text.bytes().rfind(bare);
    if (at == absl::string_view::npos) {
      return absl::InvalidArgumentError(
          "continue_final_message: the template does not write the last "
          "message's content as it is");
    }
    // The template took the space after the tag off; so it would have done
    // with the content's own.
    const bool stripped =
        !absl::StartsWith(text.bytes().substr(at), kContinueTag);
    const jinja::Text cut = text.Slice(0, at);
    if (!stripped) return cut;
    return cut.Slice(0, jinja::Stripped(cut.bytes(), jinja::Side::kRight).end);
  }

  const jinja::Body body_;
  const SpecialTexts special_;
  bool takes_parts_ = false;
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
