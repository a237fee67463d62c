#include "router/http/openai/chat_fields.h"

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/peer/error_reason.h"

namespace penstock {
namespace {

constexpr size_t kMaxText = size_t{64} << 20;

std::string ReadPart(const ApiJson& part, const std::string& path,
                     BodyFields& messages) {
  if (!part.is_object()) {
    messages.Fail(BodyFieldError(path, "must be an object with type and text"));
    return "";
  }
  BodyFields fields(part, absl::StrCat(path, "."));
  const std::string type = fields.String("type", 64);
  std::string text;
  if (fields.status().ok() && type != "text") {
    const std::string field = fields.PathOf("type");
    fields.Fail(
        MakeError(ErrorReason::kFieldNotImplemented,
                  absl::StrCat(field, " is \"", ShortForError(type),
                               "\"; this model reads text only: use \"text\""),
                  field));
  } else if (fields.Find("text") == nullptr) {
    fields.FailAt("text", "is missing");
  } else {
    text = fields.String("text", kMaxText);
  }
  messages.Fail(fields.status());
  return text;
}

// Everything but role and content, in the client's order, without nulls.
std::string OtherFields(const ApiJson& message) {
  ApiJson others = ApiJson::object();
  for (const auto& [key, value] : message.items()) {
    if (key != "role" && key != "content" && !value.is_null()) {
      others.get_ptr<ApiJson::object_t*>()->emplace_back(key, value);
    }
  }
  return others.empty() ? "" : DumpJson(others);
}

ChatMessage ReadMessage(const ApiJson& value, const std::string& path,
                        BodyFields& messages) {
  ChatMessage message;
  if (!value.is_object()) {
    messages.Fail(
        BodyFieldError(path, "must be an object with role and content"));
    return message;
  }
  BodyFields fields(value, absl::StrCat(path, "."));
  message.role = fields.String("role", 64);
  if (fields.status().ok() && message.role.empty()) {
    fields.FailAt("role", "is missing or empty");
  }
  const ApiJson* content = fields.Find("content");
  if (content == nullptr) {
    // Calls of tools come without content; other messages do not.
    message.null_content = true;
    if (fields.Find("tool_calls") == nullptr) {
      fields.FailAt("content", "is missing");
    }
  } else if (content->is_array()) {
    for (size_t i = 0; i < content->size() && messages.status().ok(); ++i) {
      message.parts.push_back(ReadPart(
          (*content)[i], absl::StrCat(fields.PathOf("content"), "[", i, "]"),
          messages));
    }
  } else {
    message.content = fields.String("content", kMaxText);
  }
  messages.Fail(fields.status());
  message.fields = OtherFields(value);
  return message;
}

std::string ReadKwargs(BodyFields& fields) {
  const ApiJson* kwargs = fields.Find("chat_template_kwargs");
  if (kwargs == nullptr) return "";
  if (!kwargs->is_object()) {
    fields.FailAt("chat_template_kwargs", "must be an object");
    return "";
  }
  return DumpJson(*kwargs);
}

std::string ReadDocuments(BodyFields& fields) {
  const ApiJson* documents = fields.Find("documents");
  if (documents == nullptr) return "";
  if (!documents->is_array()) {
    fields.FailAt("documents", "must be a list of objects");
    return "";
  }
  return DumpJson(*documents);
}

}  // namespace

ChatInput ReadChat(BodyFields& fields) {
  ChatInput chat;
  const ApiJson* messages = fields.Find("messages");
  if (messages == nullptr || !messages->is_array() || messages->empty()) {
    fields.Fail(MakeError(ErrorReason::kPromptEmpty,
                          "messages must be a list of at least one message",
                          "messages"));
    return chat;
  }
  for (size_t i = 0; i < messages->size() && fields.status().ok(); ++i) {
    chat.messages.push_back(ReadMessage(
        (*messages)[i], absl::StrCat(fields.PathOf("messages"), "[", i, "]"),
        fields));
  }
  chat.options.continue_final_message =
      fields.Bool("continue_final_message", false);
  chat.options.add_generation_prompt = fields.Bool(
      "add_generation_prompt", !chat.options.continue_final_message);
  chat.options.kwargs = ReadKwargs(fields);
  chat.options.documents = ReadDocuments(fields);
  return chat;
}

}  // namespace penstock
