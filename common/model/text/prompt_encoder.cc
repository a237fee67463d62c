#include "common/model/text/prompt_encoder.h"

#include "absl/memory/memory.h"
#include "absl/strings/cord.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/model/utf8.h"

namespace penstock {
namespace {

using Kind = PromptError::Kind;

constexpr char kPayload[] = "penstock/prompt_error";

// The status with the error attached: a digit for the kind, then the field.
absl::Status Attach(Kind kind, absl::string_view field, absl::Status status) {
  status.SetPayload(kPayload,
                    absl::Cord(absl::StrCat(static_cast<int>(kind), field)));
  return status;
}

absl::Status Bad(Kind kind, absl::string_view field, absl::string_view what) {
  return Attach(kind, field,
                absl::InvalidArgumentError(absl::StrCat(field, " ", what)));
}

absl::Status CheckText(absl::string_view field, absl::string_view text) {
  absl::Status status = CheckUtf8(field, text);
  return status.ok() ? status : Attach(Kind::kNotUtf8, field, status);
}

// An error of a template or tokenizer, under the field that brought it about.
absl::Status Blame(Kind kind, absl::string_view field,
                   const absl::Status& status) {
  return Attach(
      kind, field,
      absl::Status(status.code(), absl::StrCat(field, ": ", status.message())));
}

}  // namespace

absl::optional<PromptError> PromptErrorOf(const absl::Status& status) {
  const absl::optional<absl::Cord> payload = status.GetPayload(kPayload);
  if (!payload.has_value()) return absl::nullopt;
  const std::string text(*payload);
  return PromptError{static_cast<Kind>(text[0] - '0'), text.substr(1)};
}

absl::StatusOr<std::unique_ptr<PromptEncoder>> PromptEncoder::Create(
    const Vocabulary& vocabulary, absl::string_view chat_template,
    const Options& options) {
  ASSIGN_OR_RETURN(std::unique_ptr<Tokenizer> tokenizer,
                   CreateTokenizer(vocabulary));
  const auto text = [&tokenizer](TokenId id) {
    return id == -1 ? std::string() : std::string(tokenizer->TokenBytes(id));
  };
  const ChatTemplate::SpecialTexts special = {text(tokenizer->bos()),
                                              text(tokenizer->eos())};
  auto encoder =
      absl::WrapUnique(new PromptEncoder(std::move(tokenizer), options));
  if (chat_template.empty()) {
    encoder->chat_status_ = absl::FailedPreconditionError(
        "the model has no chat template; send a prompt instead of messages");
    return encoder;
  }
  absl::StatusOr<std::unique_ptr<ChatTemplate>> parsed =
      ChatTemplate::Parse(chat_template, special);
  if (parsed.ok()) {
    encoder->chat_template_ = *std::move(parsed);
  } else {
    encoder->chat_status_ = parsed.status();
  }
  return encoder;
}

absl::StatusOr<std::vector<TokenId>> PromptEncoder::EncodeText(
    absl::string_view text, SpecialTokens special) const {
  constexpr absl::string_view kField = "prompt";
  if (text.empty()) return Bad(Kind::kEmpty, kField, "is empty");
  if (text.size() > options_.max_text_bytes) {
    return Bad(Kind::kTooLong, kField,
               absl::StrCat("has ", text.size(), " bytes; at most ",
                            options_.max_text_bytes));
  }
  RETURN_IF_ERROR(CheckText(kField, text));
  absl::StatusOr<std::vector<TokenId>> ids = tokenizer_->Encode(text, special);
  if (!ids.ok()) return Blame(Kind::kTooLong, kField, ids.status());
  if (tokenizer_->add_bos() &&
      (ids->empty() || ids->front() != tokenizer_->bos())) {
    ids->insert(ids->begin(), tokenizer_->bos());
  }
  if (tokenizer_->add_eos() &&
      (ids->empty() || ids->back() != tokenizer_->eos())) {
    ids->push_back(tokenizer_->eos());
  }
  // Bytes that have no token vanish.
  if (ids->empty()) return Bad(Kind::kEmpty, kField, "has no tokens");
  return ids;
}

absl::Status PromptEncoder::CheckMessages(
    absl::Span<const ChatMessage> messages) const {
  constexpr absl::string_view kField = "messages";
  if (messages.empty()) return Bad(Kind::kEmpty, kField, "is empty");
  if (messages.size() > options_.max_messages) {
    return Bad(Kind::kTooLong, kField,
               absl::StrCat("has ", messages.size(), " messages; at most ",
                            options_.max_messages));
  }
  for (size_t i = 0; i < messages.size(); ++i) {
    const std::string role = absl::StrCat(kField, "[", i, "].role");
    const std::string content = absl::StrCat(kField, "[", i, "].content");
    if (messages[i].role.empty()) return Bad(Kind::kInvalid, role, "is empty");
    if (messages[i].role.size() > options_.max_role_bytes) {
      return Bad(Kind::kInvalid, role,
                 absl::StrCat("has ", messages[i].role.size(),
                              " bytes; at most ", options_.max_role_bytes));
    }
    RETURN_IF_ERROR(CheckText(role, messages[i].role));
    RETURN_IF_ERROR(CheckText(content, messages[i].content));
  }
  return absl::OkStatus();
}

absl::Status PromptEncoder::CheckSizes(absl::Span<const ChatMessage> messages,
                                       const ChatOptions& options) const {
  size_t left = options_.max_text_bytes;
  // Subtracting keeps the sum from running over.
  const auto take = [&](const std::string& field, absl::string_view text) {
    if (text.size() > left) {
      return Bad(Kind::kTooLong, field,
                 absl::StrCat("takes all texts over ", options_.max_text_bytes,
                              " bytes"));
    }
    left -= text.size();
    return absl::OkStatus();
  };
  for (size_t i = 0; i < messages.size(); ++i) {
    const std::string at = absl::StrCat("messages[", i, "]");
    RETURN_IF_ERROR(take(at + ".content", messages[i].content));
    for (const std::string& part : messages[i].parts) {
      // Counts the part itself, too.
      RETURN_IF_ERROR(take(at + ".content", part));
      RETURN_IF_ERROR(take(at + ".content", "[text]"));
    }
    RETURN_IF_ERROR(take(at + ".fields", messages[i].fields));
  }
  RETURN_IF_ERROR(take("tools", options.tools));
  RETURN_IF_ERROR(take("documents", options.documents));
  return take("chat_template_kwargs", options.kwargs);
}

absl::StatusOr<std::vector<TokenId>> PromptEncoder::EncodeChat(
    absl::Span<const ChatMessage> messages, const ChatOptions& options) const {
  constexpr absl::string_view kField = "messages";
  if (chat_template_ == nullptr) {
    return Blame(Kind::kNoTemplate, kField, chat_status_);
  }
  RETURN_IF_ERROR(CheckMessages(messages));
  RETURN_IF_ERROR(CheckSizes(messages, options));
  const absl::StatusOr<std::vector<ChatTemplate::Piece>> pieces =
      chat_template_->Render(messages, options);
  if (!pieces.ok()) {
    const std::string field = ChatFieldOf(pieces.status());
    if (field.empty()) return Blame(Kind::kInvalid, kField, pieces.status());
    return Attach(Kind::kInvalid, field, pieces.status());
  }
  absl::StatusOr<std::vector<TokenId>> ids = EncodePieces(*pieces, *tokenizer_);
  if (!ids.ok()) return Blame(Kind::kTooLong, kField, ids.status());
  if (ids->empty()) return Bad(Kind::kEmpty, kField, "makes no tokens");
  return ids;
}

}  // namespace penstock
