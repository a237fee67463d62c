#include "common/model/text/chat_variables.h"

#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/status/status.h"
#include "absl/strings/cord.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/status_macros.h"
#include "common/model/text/jinja/json_reader.h"
#include "common/model/utf8.h"

namespace penstock {
namespace {

using jinja::Text;
using jinja::TextValue;
using jinja::Value;

constexpr char kPayload[] = "penstock/chat_field";

// The same reasoning under the names that templates read it by, oldest last.
constexpr absl::string_view kReasoning[] = {"reasoning_content", "thinking",
                                            "reasoning"};
// Variables that are not the client's to set.
constexpr absl::string_view kReserved[] = {"add_generation_prompt",
                                           "continue_final_message",
                                           "documents", "messages", "tools"};

absl::Status Attach(absl::string_view field, absl::Status status) {
  status.SetPayload(kPayload, absl::Cord(field));
  return status;
}

absl::Status Bad(absl::string_view field, absl::string_view what) {
  return Attach(field,
                absl::InvalidArgumentError(absl::StrCat(field, " ", what)));
}

absl::Status CheckText(absl::string_view field, absl::string_view text) {
  absl::Status status = CheckUtf8(field, text);
  return status.ok() ? status : Attach(field, std::move(status));
}

absl::StatusOr<Value> Json(absl::string_view field, absl::string_view text) {
  absl::StatusOr<Value> value = jinja::ReadJson(text);
  if (!value.ok()) {
    return Attach(field, absl::Status(value.status().code(),
                                      absl::StrCat(field, " ",
                                                   value.status().message())));
  }
  return value;
}

// An array of objects, none when the text is empty.
absl::StatusOr<Value> Objects(absl::string_view field, absl::string_view text) {
  if (text.empty()) return Value();
  ASSIGN_OR_RETURN(Value value, Json(field, text));
  if (value.list() == nullptr ||
      !absl::c_all_of(value.list()->items,
                      [](const Value& item) { return item.dict(); })) {
    return Bad(field, "is not a JSON array of objects");
  }
  return value;
}

absl::StatusOr<jinja::Dict> Object(absl::string_view field,
                                   absl::string_view text) {
  if (text.empty()) return jinja::Dict();
  ASSIGN_OR_RETURN(const Value value, Json(field, text));
  if (value.dict() == nullptr) return Bad(field, "is not a JSON object");
  return *value.dict();
}

void Put(jinja::Dict& dict, absl::string_view key, Value value) {
  dict.items.emplace_back(Text(key, false), std::move(value));
}

absl::StatusOr<Value> ContentValue(const ChatMessage& message,
                                   const std::string& at, bool takes_parts,
                                   bool tagged) {
  const absl::string_view tag = tagged ? kContinueTag : "";
  if (message.null_content) {
    if (!message.content.empty() || !message.parts.empty()) {
      return Bad(at + ".content", "is both null and given");
    }
    if (tagged)
      return Bad(at + ".content", "is null; there is nothing to go on with");
    return Value();
  }
  RETURN_IF_ERROR(CheckText(at + ".content", message.content));
  if (message.parts.empty()) {
    return TextValue(absl::StrCat(message.content, tag), true);
  }
  if (!message.content.empty()) {
    return Bad(at + ".content", "is given both as a text and in parts");
  }
  jinja::List parts;
  parts.depth = 2;
  for (size_t i = 0; i < message.parts.size(); ++i) {
    RETURN_IF_ERROR(CheckText(absl::StrCat(at, ".content[", i, "].text"),
                              message.parts[i]));
    const bool last = i + 1 == message.parts.size();
    jinja::Dict part;
    Put(part, "type", TextValue("text"));
    Put(part, "text",
        TextValue(absl::StrCat(message.parts[i], last ? tag : ""), true));
    parts.items.emplace_back(std::move(part));
  }
  if (takes_parts) return Value(std::move(parts));
  return TextValue(absl::StrCat(absl::StrJoin(message.parts, "\n"), tag), true);
}

// Reasoning under each name that a template may ask for.
void AliasReasoning(jinja::Dict& message) {
  const Value* reasoning = nullptr;
  for (const absl::string_view name : kReasoning) {
    const Value* value = message.Find(name);
    if (reasoning == nullptr && value != nullptr && !value->is_none()) {
      reasoning = value;
    }
  }
  if (reasoning == nullptr) return;
  const Value kept = *reasoning;
  if (message.Find("thinking") == nullptr) {
    message.items.emplace(message.items.begin(), Text("thinking", false), kept);
  }
  for (auto& [key, value] : message.items) {
    if (key.bytes() == "reasoning_content") {
      value = kept;
      return;
    }
  }
  Put(message, "reasoning_content", kept);
}

absl::StatusOr<Value> MessageValue(const ChatMessage& message,
                                   const std::string& at, bool takes_parts,
                                   bool tagged) {
  RETURN_IF_ERROR(CheckText(at + ".role", message.role));
  jinja::Dict dict;
  Put(dict, "role", TextValue(message.role, !IsKnownRole(message.role)));
  ASSIGN_OR_RETURN(Value content,
                   ContentValue(message, at, takes_parts, tagged));
  Put(dict, "content", std::move(content));
  const std::string field = at + ".fields";
  ASSIGN_OR_RETURN(jinja::Dict more, Object(field, message.fields));
  for (auto& [key, value] : more.items) {
    if (key.bytes() == "role" || key.bytes() == "content") {
      return Bad(field, absl::StrCat("has '", key.bytes(), "' again"));
    }
    dict.items.emplace_back(std::move(key), std::move(value));
  }
  AliasReasoning(dict);
  for (const auto& [key, value] : dict.items) {
    dict.depth = std::max(dict.depth, value.depth() + 1);
  }
  return Value(std::move(dict));
}

}  // namespace

std::string ChatFieldOf(const absl::Status& status) {
  const absl::optional<absl::Cord> payload = status.GetPayload(kPayload);
  return payload.has_value() ? std::string(*payload) : std::string();
}

absl::StatusOr<jinja::Scopes::Variables> ChatVariables(
    absl::Span<const ChatMessage> messages, const ChatOptions& options,
    bool takes_parts) {
  if (options.continue_final_message && options.add_generation_prompt) {
    return Bad("continue_final_message",
               "cannot go with add_generation_prompt; set that to false");
  }
  if (options.continue_final_message && messages.empty()) {
    return Bad("continue_final_message", "needs a last message");
  }
  jinja::List list;
  for (size_t i = 0; i < messages.size(); ++i) {
    const bool tagged =
        options.continue_final_message && i + 1 == messages.size();
    ASSIGN_OR_RETURN(
        list.items.emplace_back(),
        MessageValue(messages[i], absl::StrCat("messages[", i, "]"),
                     takes_parts, tagged));
    list.depth = std::max(list.depth, list.items.back().depth() + 1);
  }
  jinja::Scopes::Variables variables;
  ASSIGN_OR_RETURN(const jinja::Dict kwargs,
                   Object("chat_template_kwargs", options.kwargs));
  for (const auto& [key, value] : kwargs.items) {
    if (absl::c_linear_search(kReserved, key.bytes())) {
      return Bad("chat_template_kwargs",
                 absl::StrCat("sets '", key.bytes(),
                              "', which has a field of its own"));
    }
    variables[std::string(key.bytes())] = value;
  }
  // Templates ask `if tools`; without any they are none, not undefined.
  ASSIGN_OR_RETURN(variables["tools"], Objects("tools", options.tools));
  ASSIGN_OR_RETURN(variables["documents"],
                   Objects("documents", options.documents));
  variables["messages"] = Value(std::move(list));
  variables["add_generation_prompt"] = Value(options.add_generation_prompt);
  return variables;
}

}  // namespace penstock
