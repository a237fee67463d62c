// What templates see of a chat: messages with all their fields, and options.
#include <string>
#include <vector>

#include "common/model/text/chat_template.h"
#include "common/model/text/prompt_encoder.h"
#include "common/model/text/small_vocabulary.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace penstock {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

absl::StatusOr<std::vector<ChatTemplate::Piece>> Rendered(
    absl::string_view source, const std::vector<ChatMessage>& messages,
    const ChatOptions& options = ChatOptions()) {
  const auto parsed = ChatTemplate::Parse(source, {"<s>", "</s>"});
  if (!parsed.ok()) return parsed.status();
  return (*parsed)->Render(messages, options);
}

std::string TextOf(absl::string_view source,
                   const std::vector<ChatMessage>& messages,
                   const ChatOptions& options = ChatOptions()) {
  const auto pieces = Rendered(source, messages, options);
  return pieces.ok() ? JoinPieces(*pieces) : pieces.status().ToString();
}

constexpr char kDump[] = "{% for m in messages %}{{ m|tojson }}{% endfor %}";

TEST(ChatOptions, MessagesKeepAllTheirFieldsInOrder) {
  ChatMessage call = {"assistant", ""};
  call.null_content = true;
  call.fields =
      R"({"tool_calls": [{"id": "c1", "function": {"name": "f",
          "arguments": {"b": 1, "a": [true, null, 1.5]}}}], "name": "x"})";
  EXPECT_EQ(TextOf(kDump, {call}),
            R"({"role": "assistant", "content": null, "tool_calls": )"
            R"([{"id": "c1", "function": {"name": "f", "arguments": )"
            R"({"b": 1, "a": [true, null, 1.5]}}}], "name": "x"})");
  EXPECT_EQ(TextOf(kDump, {{.role = "tool",
                            .content = "21",
                            .fields = R"({"a": 1, "b": 2, "a": 3})"}}),
            R"({"role": "tool", "content": "21", "a": 3, "b": 2})");
}

TEST(ChatOptions, ReasoningIsFoundUnderEachOfItsNames) {
  EXPECT_EQ(TextOf(kDump, {{.role = "assistant",
                            .content = "c",
                            .fields = R"({"reasoning": "r"})"}}),
            R"({"thinking": "r", "role": "assistant", "content": "c", )"
            R"("reasoning": "r", "reasoning_content": "r"})");
  EXPECT_EQ(TextOf(kDump, {{.role = "assistant",
                            .content = "c",
                            .fields = R"({"reasoning_content": null})"}}),
            R"({"role": "assistant", "content": "c", )"
            R"("reasoning_content": null})");
}

TEST(ChatOptions, PartsGoToTemplatesThatReadThem) {
  const ChatMessage message = {"user", "", {"one", "two"}};
  EXPECT_EQ(
      TextOf("{% for m in messages %}{{ m.content }}{% endfor %}", {message}),
      "one\ntwo");
  EXPECT_EQ(TextOf("{% for m in messages %}{% if m.content is string %}"
                   "{{ m.content }}{% else %}{% for p in m.content %}"
                   "[{{ p.type }}:{{ p['text'] }}]{% endfor %}{% endif %}"
                   "{% endfor %}",
                   {message}),
            "[text:one][text:two]");
  // A template that dumps what it is given does not read parts.
  EXPECT_EQ(TextOf(kDump, {message}),
            R"({"role": "user", "content": "one\ntwo"})");
}

TEST(ChatOptions, ToolsDocumentsAndVariables) {
  const std::string source =
      "{{ tools is none }} {{ documents is none }} {{ x is defined }} "
      "{% if tools %}{{ tools[0].function.name }}{% endif %}"
      "{% if documents %}{{ documents|length }}{% endif %}{{ x }}"
      "{{ bos_token }}";
  EXPECT_EQ(TextOf(source, {}), "True True False <s>");
  ChatOptions options;
  options.tools = R"([{"type": "function", "function": {"name": "f"}}])";
  options.documents = R"([{"title": "t"}, {}])";
  options.kwargs = R"({"x": "y", "bos_token": "b"})";
  EXPECT_EQ(TextOf(source, {}, options), "False False True f2yb");
  // All of it is text of the client.
  const auto pieces = Rendered(source, {}, options);
  ASSERT_EQ(pieces->size(), 4u);
  EXPECT_EQ((*pieces)[1].text, "f");
  EXPECT_TRUE((*pieces)[1].from_message);
  EXPECT_EQ((*pieces)[3].text, "yb");
  EXPECT_TRUE((*pieces)[3].from_message);
}

TEST(ChatOptions, TheTimeIsTheCallers) {
  const char kSource[] =
      "{% if strftime_now is defined %}{{ strftime_now('%d %b %Y') }}"
      "{% else %}no clock{% endif %}";
  EXPECT_EQ(TextOf(kSource, {}), "no clock");
  ChatOptions options;
  options.now = {2024, 7, 5, 9, 4, 3};
  EXPECT_EQ(TextOf(kSource, {}, options), "05 Jul 2024");
}

TEST(ChatOptions, EveryDirectiveAsPythonWritesIt) {
  ChatOptions options;
  options.now = {2024, 7, 5, 9, 4, 3};
  EXPECT_EQ(
      TextOf("{{ strftime_now('%a %A %b %B %c|%C %d %D %e %F %G %H %I %j %k %l "
             "%m %M %p %P %r %R %S %T %u %U %V %w %W %x %X %y %Y %% %-d %-I "
             "%-m') }}",
             {}, options),
      "Fri Friday Jul July Fri Jul  5 09:04:03 2024|20 05 07/05/24  5 "
      "2024-07-05 2024 09 09 187  9  9 07 04 AM am 09:04:03 AM 09:04 03 "
      "09:04:03 5 26 27 5 27 07/05/24 09:04:03 24 2024 % 5 9 7");
  // Weeks of ISO 8601 at the turn of a year.
  options.now = {2021, 1, 3};
  EXPECT_EQ(TextOf("{{ strftime_now('%G %V %U %W') }}", {}, options),
            "2020 53 01 00");
  options.now = {2024, 12, 30};
  EXPECT_EQ(TextOf("{{ strftime_now('%G %V %j') }}", {}, options),
            "2025 01 365");
}

TEST(ChatOptions, AnAnswerGoesOnFromTheLastMessage) {
  const char kSource[] =
      "{% for m in messages %}<{{ m.role }}>{{ m.content }}</s>{% endfor %}";
  const char kTrimming[] =
      "{% for m in messages %}<{{ m.role }}>{{ m.content|trim }}</s>"
      "{% endfor %}";
  ChatOptions options;
  options.add_generation_prompt = false;
  options.continue_final_message = true;
  const std::vector<ChatMessage> messages = {{"user", "a"},
                                             {"assistant", "One, "}};
  EXPECT_EQ(TextOf(kSource, messages, options), "<user>a</s><assistant>One, ");
  EXPECT_EQ(TextOf(kTrimming, messages, options), "<user>a</s><assistant>One,");
  const auto lost = Rendered("{{ messages[0].role }}", messages, options);
  EXPECT_THAT(std::string(lost.status().message()),
              StartsWith("continue_final_message"));
  options.add_generation_prompt = true;
  const auto both = Rendered(kSource, messages, options);
  EXPECT_EQ(ChatFieldOf(both.status()), "continue_final_message");
}

TEST(ChatOptions, ErrorsNameTheField) {
  const auto encoder = *PromptEncoder::Create(SmallVocabulary(), kDump);
  const auto expect = [&](const ChatMessage& message,
                          const ChatOptions& options, absl::string_view field,
                          absl::string_view what) {
    const absl::Status status =
        encoder->EncodeChat({message}, options).status();
    const auto error = PromptErrorOf(status);
    ASSERT_TRUE(error.has_value()) << status;
    EXPECT_EQ(error->field, field);
    EXPECT_THAT(std::string(status.message()),
                StartsWith(std::string(field) + " "));
    EXPECT_THAT(std::string(status.message()), HasSubstr(std::string(what)));
  };
  const ChatMessage user = {"user", "x"};
  expect({.role = "user", .fields = "{"}, {}, "messages[0].fields", "no JSON");
  expect({.role = "user", .fields = "[]"}, {}, "messages[0].fields",
         "not a JSON object");
  expect({.role = "user", .fields = R"({"role": "x"})"}, {},
         "messages[0].fields", "'role' again");
  expect({.role = "user", .content = "a", .parts = {"b"}}, {},
         "messages[0].content", "both");
  expect({.role = "user", .content = "a", .null_content = true}, {},
         "messages[0].content", "null");
  expect({.role = "user", .parts = {"b", "\xFF"}}, {},
         "messages[0].content[1].text", "UTF-8");
  expect(user, {.tools = "{}"}, "tools", "array of objects");
  expect(user, {.tools = "[1]"}, "tools", "array of objects");
  expect(user, {.documents = "[{}"}, "documents", "no JSON");
  expect(user, {.kwargs = R"({"messages": 1})"}, "chat_template_kwargs",
         "'messages'");
  expect(user, {.kwargs = "{\"a\": \"\xFF\"}"}, "chat_template_kwargs",
         "no JSON");
  expect(user, {.kwargs = R"({"a": 9223372036854775808})"},
         "chat_template_kwargs", "64 bits");
  std::string deep(65, '[');
  expect(user, {.kwargs = "{\"a\": " + deep}, "chat_template_kwargs", "deeper");
  std::string wide = "[0";
  for (int i = 0; i < 1 << 18; ++i) wide += ",0";
  expect(user, {.kwargs = "{\"a\": " + wide + "]}"}, "chat_template_kwargs",
         "more than 262144 values");
}

TEST(ChatOptions, AllTextsOfAClientAreBoundedTogether) {
  PromptEncoder::Options bounds;
  bounds.max_text_bytes = 20;
  const auto encoder = *PromptEncoder::Create(SmallVocabulary(), kDump, bounds);
  const auto field = [&](const ChatMessage& message,
                         const ChatOptions& options) {
    const auto error =
        PromptErrorOf(encoder->EncodeChat({message}, options).status());
    return error.has_value() ? error->field : "";
  };
  EXPECT_EQ(field({"user", std::string(16, 'a')}, {.tools = "[]"}), "");
  EXPECT_EQ(field({"user", std::string(16, 'a')}, {.tools = "[{}, {}]"}),
            "tools");
  EXPECT_EQ(field({"user", "", {"a", "b", "c"}}, {}), "messages[0].content");
  EXPECT_EQ(field({.role = "user", .fields = R"({"a": "bcdefghijkl"})"},
                  {.kwargs = "{}"}),
            "chat_template_kwargs");
}

}  // namespace
}  // namespace penstock
