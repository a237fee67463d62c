// What templates in the manner of model families make of chats, compared with
// what the transformers library makes of them.
#include <fstream>
#include <string>
#include <vector>

#include "common/model/text/chat_template.h"
#include "common/model/text/jinja/json_reader.h"
#include "common/model/text/jinja/parser.h"
#include "common/model/text/jinja/renderer.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"

namespace penstock {
namespace {

using Json = nlohmann::ordered_json;

ChatMessage MessageOf(Json row) {
  ChatMessage message;
  message.role = row["role"];
  const Json content = row["content"];
  message.null_content = content.is_null();
  if (content.is_string()) message.content = content;
  if (content.is_array()) {
    for (const Json& part : content) message.parts.push_back(part["text"]);
  }
  row.erase("role");
  row.erase("content");
  if (!row.empty()) message.fields = row.dump();
  return message;
}

// The JSON text of an optional field.
std::string Field(const Json& chat, const char* name) {
  return chat.contains(name) ? chat[name].dump() : "";
}

TEST(ChatFamilies, RenderAsTransformersRendersThem) {
  std::ifstream in(PENSTOCK_TEST_DATA "/chat_templates/families.json");
  const Json data = Json::parse(in);
  size_t texts = 0;
  for (const Json& row : data["cases"]) {
    const std::string name = row["template"];
    SCOPED_TRACE(name + " " + row["chat"].get<std::string>());
    const Json& chat = data["chats"][row["chat"].get<std::string>()];
    const auto parsed = ChatTemplate::Parse(
        data["templates"][name].get<std::string>(), {"<s>", "</s>"});
    ASSERT_TRUE(parsed.ok()) << parsed.status();
    std::vector<ChatMessage> messages;
    for (const Json& message : chat["messages"]) {
      messages.push_back(MessageOf(message));
    }
    ChatOptions options;
    options.add_generation_prompt = chat.value("add_generation_prompt", true);
    options.continue_final_message =
        chat.value("continue_final_message", false);
    options.tools = Field(chat, "tools");
    options.documents = Field(chat, "documents");
    options.kwargs = Field(chat, "kwargs");
    options.now = {2024, 7, 5, 9, 4, 3};
    const auto pieces = (*parsed)->Render(messages, options);
    if (!row.contains("text")) {
      EXPECT_EQ(pieces.status().code(), absl::StatusCode::kInvalidArgument)
          << row["error"];
      continue;
    }
    ASSERT_TRUE(pieces.ok()) << pieces.status();
    EXPECT_EQ(JoinPieces(*pieces), row["text"].get<std::string>());
    ++texts;
  }
  EXPECT_GT(texts, 250u);
}

TEST(RandomTemplates, RenderAsJinja2RendersThem) {
  std::ifstream in(PENSTOCK_TEST_DATA "/chat_templates/random.jsonl");
  size_t texts = 0;
  size_t unknown = 0;
  for (std::string line; std::getline(in, line);) {
    const Json row = Json::parse(line);
    SCOPED_TRACE(row["seed"].dump());
    const auto variables = jinja::ReadJson(row["variables"].dump());
    ASSERT_TRUE(variables.ok());
    jinja::Scopes::Variables globals;
    for (const auto& [name, value] : variables->dict()->items) {
      globals[std::string(name.bytes())] = value;
    }
    const auto body = jinja::Parse(row["template"].get<std::string>());
    const absl::StatusOr<jinja::Text> text =
        body.ok()
            ? jinja::Render(*body, globals, jinja::World(), jinja::Limits())
            : body.status();
    if (text.status().code() == absl::StatusCode::kUnimplemented) {
      ++unknown;
      continue;
    }
    if (!row.contains("text")) {
      EXPECT_EQ(text.status().code(), absl::StatusCode::kInvalidArgument)
          << row["python_says"];
      continue;
    }
    ASSERT_TRUE(text.ok()) << text.status();
    EXPECT_EQ(text->bytes(), row["text"].get<std::string>());
    ++texts;
  }
  EXPECT_GT(texts, 450u);
  EXPECT_LT(unknown, 20u);
}

}  // namespace
}  // namespace penstock
