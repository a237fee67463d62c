#include "router/http/openai/answer_writer.h"

#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "common/model/text/small_vocabulary.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace penstock {
namespace {

using testing::ElementsAre;

TokenFrame Frame(int first, std::vector<FrameToken> tokens,
                 FinishReason finish = FinishReason::kNone) {
  TokenFrame frame;
  frame.first_index = first;
  frame.tokens = std::move(tokens);
  frame.finish = finish;
  if (finish != FinishReason::kNone) frame.usage = {7, 4, 3};
  return frame;
}

class AnswerWriterTest : public testing::Test {
 protected:
  AnswerWriterTest() : tokenizer_(*CreateTokenizer(SmallVocabulary())) {
    options_.id = "id-1";
    options_.model = "m";
    options_.fingerprint = "fp";
    options_.created = 99;
    options_.prompts = {{{'h', 'i'}, "hi"}};
  }

  // Everything that a stream sends, event by event.
  static std::vector<std::string> Events(const std::string& text) {
    std::vector<std::string> events = absl::StrSplit(text, "\n\n");
    EXPECT_EQ(events.back(), "");
    events.pop_back();
    for (std::string& event : events) {
      EXPECT_TRUE(absl::StartsWith(event, "data: ")) << event;
      event = event.substr(6);
    }
    return events;
  }

  std::unique_ptr<Tokenizer> tokenizer_;
  AnswerWriter::Options options_;
};

TEST_F(AnswerWriterTest, AChatAsADocument) {
  AnswerWriter writer(options_, tokenizer_.get());
  EXPECT_EQ(*writer.Add(0, Frame(0, {{'a', "a", {}}})), "");
  TokenFrame last = Frame(1, {{'b', "", {}}}, FinishReason::kLength);
  last.final_text = "b";
  EXPECT_EQ(*writer.Add(0, last), "");
  EXPECT_EQ(
      writer.Finish(),
      R"({"id":"id-1","object":"chat.completion","created":99,"model":"m",)"
      R"("system_fingerprint":"fp","choices":[{"index":0,"message":)"
      R"({"role":"assistant","content":"ab","refusal":null},)"
      R"("logprobs":null,"finish_reason":"length"}],"usage":)"
      R"({"prompt_tokens":7,"completion_tokens":3,"total_tokens":10,)"
      R"("prompt_tokens_details":{"cached_tokens":4}}})");
}

TEST_F(AnswerWriterTest, AChatAsEvents) {
  options_.answer.stream = true;
  options_.answer.include_usage = true;
  AnswerWriter writer(options_, tokenizer_.get());
  std::string text = *writer.Add(0, Frame(0, {{'a', "a", {}}}));
  text += *writer.Add(0, Frame(1, {{0xC3, "", {}}}));  // half a character
  text += *writer.Add(0, Frame(2, {{'b', "b", {}}}, FinishReason::kStop));
  text += writer.Finish();
  const std::string head =
      R"({"id":"id-1","object":"chat.completion.chunk","created":99,)"
      R"("model":"m","system_fingerprint":"fp","choices":[)";
  EXPECT_THAT(
      Events(text),
      ElementsAre(
          head + R"({"index":0,"delta":{"role":"assistant","content":"a"},)"
                 R"("logprobs":null,"finish_reason":null}],"usage":null})",
          head + R"({"index":0,"delta":{"content":"b"},"logprobs":null,)"
                 R"("finish_reason":null}],"usage":null})",
          head + R"({"index":0,"delta":{},"logprobs":null,)"
                 R"("finish_reason":"stop"}],"usage":null})",
          head + R"(],"usage":{"prompt_tokens":7,"completion_tokens":3,)"
                 R"("total_tokens":10,"prompt_tokens_details":)"
                 R"({"cached_tokens":4}}})",
          "[DONE]"));
}

TEST_F(AnswerWriterTest, AnEmptyChatStillHasARoleAndAnEnd) {
  options_.answer.stream = true;
  AnswerWriter writer(options_, tokenizer_.get());
  const auto events =
      Events(*writer.Add(0, Frame(0, {{tokenizer_->eos(), "", {}}},
                                  FinishReason::kStop)) +
             writer.Finish());
  ASSERT_EQ(events.size(), 3u);
  EXPECT_EQ(ApiJson::parse(events[0])["choices"][0]["delta"],
            (ApiJson{{"role", "assistant"}, {"content", ""}}));
  EXPECT_EQ(ApiJson::parse(events[1])["choices"][0]["finish_reason"], "stop");
}

TEST_F(AnswerWriterTest, ChoicesAreNumberedPromptByPromptSampleBySample) {
  options_.answer.kind = AnswerKind::kCompletion;
  options_.samples = 2;
  options_.prompts = {{{'x'}, "x"}, {{'y'}, "y"}};
  AnswerWriter writer(options_, tokenizer_.get());
  for (int prompt : {1, 0}) {
    for (int sample : {1, 0}) {
      const auto id = static_cast<TokenId>('a' + 2 * prompt + sample);
      TokenFrame frame =
          Frame(0, {{id, std::string(1, static_cast<char>(id)), {}}},
                FinishReason::kLength);
      frame.sample = sample;
      // Usage is on the last that ends only.
      if (sample == 1) frame.usage = {};
      ASSERT_TRUE(writer.Add(prompt, frame).ok());
    }
  }
  const ApiJson json = ApiJson::parse(writer.Finish());
  for (int i = 0; i < 4; ++i) {
    EXPECT_EQ(json["choices"][i]["index"], i);
    EXPECT_EQ(json["choices"][i]["text"],
              std::string(1, static_cast<char>('a' + i)));
  }
  EXPECT_EQ(json["usage"]["prompt_tokens"], 14);
  TokenFrame stray = Frame(0, {{'a', "a", {}}});
  stray.sample = 2;
  EXPECT_FALSE(writer.Add(0, stray).ok());
  EXPECT_FALSE(writer.Add(2, Frame(0, {{'a', "a", {}}})).ok());
}

TEST_F(AnswerWriterTest, ChatLogprobsSpellBytesAndLeaveOutTheStopToken) {
  options_.answer.logprobs = true;
  options_.answer.top_logprobs = 1;
  AnswerWriter writer(options_, tokenizer_.get());
  ASSERT_TRUE(
      writer
          .Add(0, Frame(0,
                        {{0xC3, "", {-0.5f, {{0xC3, -0.5f}, {'b', -1.0f}}}},
                         {0xA9, "\xC3\xA9", {-0.25f, {{'c', -0.125f}}}},
                         {tokenizer_->eos(), "", {-1.0f, {}}}},
                        FinishReason::kStop))
          .ok());
  const ApiJson json = ApiJson::parse(writer.Finish());
  const ApiJson& content = json["choices"][0]["logprobs"]["content"];
  ASSERT_EQ(content.size(), 2u);
  EXPECT_EQ(content[0],
            ApiJson::parse(
                R"({"token":"bytes:\\xc3","logprob":-0.5,"bytes":[195],
                "top_logprobs":[{"token":"bytes:\\xc3","logprob":-0.5,
                "bytes":[195]}]})"));
  EXPECT_EQ(content[1]["top_logprobs"][0]["token"], "c");
}

TEST_F(AnswerWriterTest, CompletionLogprobsWithEcho) {
  options_.answer = {.kind = AnswerKind::kCompletion,
                     .echo = true,
                     .logprobs = true,
                     .top_logprobs = 1};
  AnswerWriter writer(options_, tokenizer_.get());
  TokenFrame frame =
      Frame(0, {{'a', "a", {-0.5f, {{'b', -0.25f}}}}}, FinishReason::kLength);
  frame.prompt.tokens = {{-2.0f, {{'j', -1.0f}}}};
  ASSERT_TRUE(writer.Add(0, frame).ok());
  const ApiJson choice = ApiJson::parse(writer.Finish())["choices"][0];
  EXPECT_EQ(choice["text"], "hia");
  EXPECT_EQ(choice["logprobs"], ApiJson::parse(R"({"tokens":["h","i","a"],
      "token_logprobs":[null,-2.0,-0.5],
      "top_logprobs":[null,{"j":-1.0,"i":-2.0},{"b":-0.25,"a":-0.5}],
      "text_offset":[0,1,2]})"));
}

TEST_F(AnswerWriterTest, PromptLogprobsAndTokenIds) {
  options_.answer.prompt_logprobs = true;
  options_.answer.return_token_ids = true;
  AnswerWriter writer(options_, tokenizer_.get());
  TokenFrame first;
  first.prompt.tokens = {{-2.0f, {{'j', -1.0f}}}};
  EXPECT_EQ(*writer.Add(0, first), "");
  ASSERT_TRUE(
      writer.Add(0, Frame(0, {{'a', "a", {}}}, FinishReason::kLength)).ok());
  const ApiJson choice = ApiJson::parse(writer.Finish())["choices"][0];
  EXPECT_EQ(choice["token_ids"], ApiJson::parse("[97]"));
  EXPECT_EQ(choice["prompt_token_ids"], ApiJson::parse("[104,105]"));
  EXPECT_EQ(choice["prompt_logprobs"], ApiJson::parse(R"([null,
      {"105":{"logprob":-2.0,"decoded_token":"i"},
       "106":{"logprob":-1.0,"decoded_token":"j"}}])"));
}

TEST_F(AnswerWriterTest, AScoreLeavesOutWhatIsGenerated) {
  options_.answer = {.kind = AnswerKind::kCompletion,
                     .echo = true,
                     .logprobs = true,
                     .score_only = true};
  AnswerWriter writer(options_, tokenizer_.get());
  TokenFrame frame = Frame(0, {{'a', "a", {-0.5f, {}}}}, FinishReason::kStop);
  frame.prompt.tokens = {{-2.0f, {}}};
  ASSERT_TRUE(writer.Add(0, frame).ok());
  const ApiJson json = ApiJson::parse(writer.Finish());
  EXPECT_EQ(json["choices"][0]["text"], "hi");
  EXPECT_EQ(json["choices"][0]["finish_reason"], "length");
  EXPECT_EQ(json["choices"][0]["logprobs"]["token_logprobs"],
            ApiJson::parse("[null,-2.0]"));
  EXPECT_EQ(json["usage"]["completion_tokens"], 0);
}

TEST_F(AnswerWriterTest, InfinityIsNoJson) {
  options_.answer.logprobs = true;
  AnswerWriter writer(options_, tokenizer_.get());
  const float none = -std::numeric_limits<float>::infinity();
  ASSERT_TRUE(
      writer.Add(0, Frame(0, {{'a', "a", {none, {}}}}, FinishReason::kLength))
          .ok());
  EXPECT_EQ(
      ApiJson::parse(
          writer.Finish())["choices"][0]["logprobs"]["content"][0]["logprob"],
      -9999.0);
}

}  // namespace
}  // namespace penstock
