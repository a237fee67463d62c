#include "tools/penstock/chat_session.h"

#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/model/utf8.h"
#include "nlohmann/json.hpp"

namespace penstock {
namespace {

constexpr char kHelp[] =
    "/clear            forget the conversation\n"
    "/save FILE        write it as JSON; -f FILE writes over a file\n"
    "/set              the settings\n"
    "/set NAME VALUE   set one; the value 'default' takes it back\n"
    "/quit             leave, as Ctrl-D does\n"
    "//...             a message that begins with a slash\n"
    "Ctrl-C ends an answer early.\n";

// Cuts the first word off a text without spaces around it.
absl::string_view TakeWord(absl::string_view& text) {
  const size_t end = text.find_first_of(" \t");
  const absl::string_view word = text.substr(0, end);
  text = end == absl::string_view::npos
             ? ""
             : absl::StripLeadingAsciiWhitespace(text.substr(end));
  return word;
}

void Add(v1::ChatMessages& messages, absl::string_view role,
         absl::string_view content) {
  v1::ChatMessage* message = messages.add_messages();
  message->set_role(std::string(role));
  message->set_content(std::string(content));
}

}  // namespace

absl::StatusOr<ChatSession::Step> ChatSession::Take(absl::string_view line) {
  RETURN_IF_ERROR(CheckUtf8("message", line));
  if (line.empty()) return Step();
  if (line[0] != '/' || absl::StartsWith(line, "//")) {
    question_ = std::string(line.substr(line[0] == '/' ? 1 : 0));
    return Step{Next::kAsk};
  }
  absl::string_view rest = absl::StripAsciiWhitespace(line);
  const absl::string_view command = TakeWord(rest);
  if (command == "/set") return TakeSet(rest);
  if (command == "/save") return TakeSave(rest);
  if (command == "/help") return Step{Next::kShow, kHelp};
  const bool quit = command == "/quit" || command == "/exit";
  if (!quit && command != "/clear") {
    return absl::InvalidArgumentError(
        absl::StrCat("there is no command ", command, "; /help shows them"));
  }
  if (!rest.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat(command, " takes nothing after it"));
  }
  if (quit) return Step{Next::kLeave};
  messages_.Clear();
  return Step{Next::kShow, "The conversation is forgotten.\n"};
}

absl::StatusOr<ChatSession::Step> ChatSession::TakeSet(absl::string_view rest) {
  if (rest.empty()) {
    return Step{Next::kShow,
                absl::StrCat("system = ", system_.empty() ? "default" : system_,
                             "\n", settings_.Describe())};
  }
  const absl::string_view name = TakeWord(rest);
  if (rest.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("a value is missing: /set ", name, " VALUE"));
  }
  RETURN_IF_ERROR(Set(name, rest));
  return Step();
}

absl::StatusOr<ChatSession::Step> ChatSession::TakeSave(
    absl::string_view rest) const {
  Step step{Next::kSave};
  if (absl::StartsWith(rest, "-f ")) {
    step.overwrite = true;
    TakeWord(rest);
  }
  step.path = std::string(rest);
  if (rest.empty() || rest == "-f") {
    return absl::InvalidArgumentError("a name is missing: /save FILE");
  }
  return step;
}

absl::Status ChatSession::Set(absl::string_view name, absl::string_view value) {
  if (name != "system") return settings_.Set(name, value);
  RETURN_IF_ERROR(CheckUtf8("system", value));
  system_ = value == "default" ? "" : std::string(value);
  return absl::OkStatus();
}

v1::GenerateRequest ChatSession::request() const {
  v1::GenerateRequest request = settings_.request();
  request.set_model(model_);
  v1::ChatMessages& messages = *request.mutable_messages();
  if (!system_.empty()) Add(messages, "system", system_);
  messages.MergeFrom(messages_);
  if (!question_.empty()) Add(messages, "user", question_);
  return request;
}

void ChatSession::Answer(std::string text) {
  Add(messages_, "user", std::exchange(question_, ""));
  Add(messages_, "assistant", text);
}

std::string ChatSession::ToJson() const {
  nlohmann::ordered_json messages = nlohmann::ordered_json::array();
  const v1::GenerateRequest whole = request();
  for (const v1::ChatMessage& message : whole.messages().messages()) {
    messages.push_back(
        {{"role", message.role()}, {"content", message.content()}});
  }
  return nlohmann::ordered_json{{"messages", messages}}.dump(
             2, ' ', false, nlohmann::json::error_handler_t::replace) +
         "\n";
}

}  // namespace penstock
