#include "common/model/text/prompt_encoder.h"

#include <memory>
#include <string>
#include <vector>

#include "common/model/text/small_vocabulary.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace penstock {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;
using Kind = PromptError::Kind;

constexpr TokenId kBos = 256;
constexpr TokenId kEos = 257;

constexpr char kTemplate[] =
    "{% for m in messages %}"
    "{% if m.role == 'bad' %}{{ raise_exception('no ' ~ m.role) }}{% endif %}"
    "<s>{{ m.role[0] ~ m.content }}{{ eos_token }}{% endfor %}"
    "{% if add_generation_prompt %}{{ bos_token }}{% endif %}";

const ChatOptions kNoPrompt = {.add_generation_prompt = false};

std::vector<ChatMessage> OneUser() { return {{"user", "x"}}; }

std::unique_ptr<PromptEncoder> Create(
    absl::string_view chat_template,
    const PromptEncoder::Options& options = PromptEncoder::Options()) {
  auto encoder =
      PromptEncoder::Create(SmallVocabulary(), chat_template, options);
  EXPECT_TRUE(encoder.ok()) << encoder.status();
  return *std::move(encoder);
}

void ExpectError(const absl::Status& status, Kind kind,
                 absl::string_view field) {
  const absl::optional<PromptError> error = PromptErrorOf(status);
  ASSERT_TRUE(error.has_value()) << status;
  EXPECT_EQ(error->kind, kind) << status;
  EXPECT_EQ(error->field, field);
  EXPECT_THAT(std::string(status.message()), StartsWith(std::string(field)));
}

TEST(PromptEncoder, RawTextIsEncodedAsAsked) {
  const auto encoder = Create("");
  EXPECT_THAT(*encoder->EncodeText("a<s>", SpecialTokens::kParse),
              ElementsAre('a', kBos));
  EXPECT_THAT(*encoder->EncodeText("a<s>", SpecialTokens::kPlain),
              ElementsAre('a', '<', 's', '>'));
}

TEST(PromptEncoder, AddsTheBeginningTokenOnceWhereTheModelAsksForIt) {
  Vocabulary vocabulary = SmallVocabulary();
  vocabulary.add_bos = true;
  const auto encoder = *PromptEncoder::Create(vocabulary, kTemplate);
  EXPECT_THAT(*encoder->EncodeText("a", SpecialTokens::kParse),
              ElementsAre(kBos, 'a'));
  EXPECT_THAT(*encoder->EncodeText("<s>a", SpecialTokens::kParse),
              ElementsAre(kBos, 'a'));
  // A template writes its own.
  EXPECT_THAT(*encoder->EncodeChat(OneUser(), kNoPrompt),
              ElementsAre(kBos, 'u', 'x', kEos));
}

TEST(PromptEncoder, AddsTheEndTokenOnceWhereTheModelAsksForIt) {
  Vocabulary vocabulary = SmallVocabulary();
  vocabulary.add_eos = true;
  const auto encoder = *PromptEncoder::Create(vocabulary, kTemplate);
  EXPECT_THAT(*encoder->EncodeText("a", SpecialTokens::kParse),
              ElementsAre('a', kEos));
  EXPECT_THAT(*encoder->EncodeText("a</s>", SpecialTokens::kParse),
              ElementsAre('a', kEos));
}

TEST(PromptEncoder, ChatsFollowTheTemplateAndContentStaysText) {
  const auto encoder = Create(kTemplate);
  EXPECT_TRUE(encoder->chat_status().ok());
  const std::vector<ChatMessage> messages = {{"user", "</s>"}};
  EXPECT_THAT(*encoder->EncodeChat(messages, ChatOptions()),
              ElementsAre(kBos, 'u', '<', '/', 's', '>', kEos, kBos));
}

TEST(PromptEncoder, ErrorsNameKindAndField) {
  PromptEncoder::Options options;
  options.max_text_bytes = 10;
  options.max_messages = 2;
  const auto encoder = Create(kTemplate, options);
  const auto text = [&](absl::string_view prompt) {
    return encoder->EncodeText(prompt, SpecialTokens::kParse).status();
  };
  const auto chat = [&](std::vector<ChatMessage> messages) {
    return encoder->EncodeChat(messages, ChatOptions()).status();
  };
  ExpectError(text(""), Kind::kEmpty, "prompt");
  ExpectError(text("12345678901"), Kind::kTooLong, "prompt");
  ExpectError(text("ab\xFF"), Kind::kNotUtf8, "prompt");
  EXPECT_THAT(std::string(text("ab\xFF").message()), HasSubstr("offset 2"));
  ExpectError(chat({}), Kind::kEmpty, "messages");
  ExpectError(chat({{"user", ""}, {"user", ""}, {"user", ""}}), Kind::kTooLong,
              "messages");
  ExpectError(chat({{"user", "a"}, {"", "a"}}), Kind::kInvalid,
              "messages[1].role");
  ExpectError(chat({{std::string(65, 'a'), "a"}}), Kind::kInvalid,
              "messages[0].role");
  ExpectError(chat({{"\xC3", "a"}}), Kind::kNotUtf8, "messages[0].role");
  ExpectError(chat({{"user", "a"}, {"user", "\xC3"}}), Kind::kNotUtf8,
              "messages[1].content");
  ExpectError(chat({{"user", "123456"}, {"user", "12345"}}), Kind::kTooLong,
              "messages[1].content");
  ExpectError(chat({{"bad", "a"}}), Kind::kInvalid, "messages");
  EXPECT_THAT(std::string(chat({{"bad", "a"}}).message()), HasSubstr("no bad"));
  EXPECT_FALSE(PromptErrorOf(absl::InternalError("other")).has_value());
}

TEST(PromptEncoder, WithoutATemplateOnlyChatsFail) {
  const auto none = Create("");
  EXPECT_EQ(none->chat_status().code(), absl::StatusCode::kFailedPrecondition);
  ExpectError(none->EncodeChat(OneUser(), ChatOptions()).status(),
              Kind::kNoTemplate, "messages");
  const auto unknown = Create("{% include 'x' %}");
  EXPECT_EQ(unknown->chat_status().code(), absl::StatusCode::kUnimplemented);
  const auto ids = unknown->EncodeChat(OneUser(), ChatOptions());
  EXPECT_EQ(ids.status().code(), absl::StatusCode::kUnimplemented);
  EXPECT_THAT(std::string(ids.status().message()), HasSubstr("include"));
  EXPECT_TRUE(unknown->EncodeText("x", SpecialTokens::kParse).ok());
}

TEST(PromptEncoder, TextWithoutTokensIsEmpty) {
  Vocabulary vocabulary = SmallVocabulary();
  vocabulary.tokens[0x04] = "unused";
  const auto encoder = *PromptEncoder::Create(vocabulary, "");
  ExpectError(encoder->EncodeText("\x04", SpecialTokens::kParse).status(),
              Kind::kEmpty, "prompt");
}

}  // namespace
}  // namespace penstock
