#include "router/http/openai/openai_request.h"

#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/peer/error_reason.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace penstock {
namespace {

using testing::ElementsAre;
using testing::StartsWith;

constexpr char kMessages[] = R"("messages":[{"role":"user","content":"hi"}])";

absl::StatusOr<OpenAiRequest> Chat(const std::string& more) {
  return ParseChatRequest(absl::StrCat("{", kMessages, more, "}"));
}
absl::StatusOr<OpenAiRequest> Completion(const std::string& more) {
  return ParseCompletionRequest(absl::StrCat("{\"prompt\":\"p\"", more, "}"));
}

const ChatInput& ChatOf(const OpenAiRequest& request) {
  return std::get<ChatInput>(request.prompts[0]);
}

void ExpectRefused(const absl::Status& status, const std::string& field,
                   ErrorReason reason = ErrorReason::kInvalidField) {
  EXPECT_FALSE(status.ok()) << field;
  EXPECT_EQ(ErrorInfoOf(status).field, field) << status;
  EXPECT_EQ(ErrorInfoOf(status).reason, reason) << status;
  EXPECT_THAT(std::string(status.message()), StartsWith(field));
}

void ExpectSame(const SamplingParams& a, const SamplingParams& b) {
  EXPECT_EQ(a.temperature, b.temperature);
  EXPECT_EQ(a.top_k, b.top_k);
  EXPECT_EQ(a.top_p, b.top_p);
  EXPECT_EQ(a.min_p, b.min_p);
  EXPECT_EQ(a.typical_p, b.typical_p);
  EXPECT_EQ(a.top_n_sigma, b.top_n_sigma);
  EXPECT_EQ(a.penalties, b.penalties);
  EXPECT_EQ(a.dry, b.dry);
  EXPECT_EQ(a.xtc, b.xtc);
  EXPECT_EQ(a.mirostat, b.mirostat);
  EXPECT_EQ(a.logit_bias, b.logit_bias);
  EXPECT_EQ(a.allowed_tokens, b.allowed_tokens);
  EXPECT_EQ(a.stages, b.stages);
  EXPECT_EQ(a.seed, b.seed);
  EXPECT_EQ(a.logprobs, b.logprobs);
}

TEST(OpenAiRequestTest, AChatWithoutOptionsHasTheApisDefaults) {
  const auto request = Chat("");
  ASSERT_TRUE(request.ok()) << request.status();
  ExpectSame(request->client.request.sampling, SamplingParams());
  EXPECT_EQ(request->client.request.n, 1);
  EXPECT_EQ(request->client.request.best_of, 0);
  EXPECT_FALSE(request->client.has_seed);
  EXPECT_FALSE(request->has_max_tokens);
  EXPECT_FALSE(request->answer.stream);
  EXPECT_EQ(request->answer.kind, AnswerKind::kChat);
  const ChatInput& chat = ChatOf(*request);
  ASSERT_EQ(chat.messages.size(), 1u);
  EXPECT_EQ(chat.messages[0].role, "user");
  EXPECT_EQ(chat.messages[0].content, "hi");
  EXPECT_TRUE(chat.options.add_generation_prompt);
}

TEST(OpenAiRequestTest, ReadsEverySharedField) {
  const auto request = Chat(
      R"(,"model":"m","temperature":0.25,"top_p":0.5,"top_k":7,"min_p":0.125,
      "typical_p":0.75,"top_n_sigma":1.5,"frequency_penalty":0.5,
      "presence_penalty":-0.5,"repetition_penalty":1.25,"repeat_last_n":64,
      "dry_multiplier":0.5,"dry_base":2,"dry_allowed_length":3,
      "dry_penalty_last_n":99,"dry_sequence_breakers":["\n",";"],
      "xtc_probability":0.5,"xtc_threshold":0.25,"mirostat":2,
      "mirostat_tau":4,"mirostat_eta":0.5,"logit_bias":{"20":-100,"3":1.5},
      "allowed_token_ids":[9,3,9],"seed":-1,"min_tokens":2,
      "stop_token_ids":[5],"stop":["a","b"],"ignore_eos":true,"n":3,
      "prompt_logprobs":2,"cache_salt":"s","prompt_cache_key":"k","user":"u","priority":-4,
      "stages":["temperature","top_n_sigma","penalties"])");
  ASSERT_TRUE(request.ok()) << request.status();
  const GenerateRequest& generate = request->client.request;
  EXPECT_EQ(generate.model, "m");
  SamplingParams wanted;
  wanted.temperature = 0.25f;
  wanted.top_p = 0.5f;
  wanted.top_k = 7;
  wanted.min_p = 0.125f;
  wanted.typical_p = 0.75f;
  wanted.top_n_sigma = 1.5f;
  wanted.penalties = {1.25f, 0.5f, -0.5f, 64};
  wanted.dry = {0.5f, 2.0f, 3, 99, {"\n", ";"}};
  wanted.xtc = {0.5f, 0.25f};
  wanted.mirostat = {true, 4.0f, 0.5f};
  wanted.logit_bias = {{3, 1.5f}, {20, -100.0f}};
  wanted.allowed_tokens = {3, 9};
  wanted.stages = {SamplerStage::kTemperature, SamplerStage::kTopNSigma,
                   SamplerStage::kPenalties};
  wanted.seed = ~uint64_t{0};
  ExpectSame(generate.sampling, wanted);
  EXPECT_TRUE(request->client.has_seed);
  EXPECT_EQ(generate.stop.min_tokens, 2);
  EXPECT_THAT(generate.stop.stop_ids, ElementsAre(5));
  EXPECT_THAT(generate.stop.stop_strings, ElementsAre("a", "b"));
  EXPECT_TRUE(generate.stop.ignore_eos);
  EXPECT_EQ(generate.n, 3);
  EXPECT_EQ(generate.prompt_logprobs, 2);
  EXPECT_EQ(generate.cache_salt, "s");
  EXPECT_EQ(generate.session, "k") << "what goes together, before its user";
  EXPECT_EQ(generate.priority, -4);
}

TEST(OpenAiRequestTest, NullsAreAbsentAndUnknownFieldsTolerated) {
  const auto request = Chat(
      R"(,"temperature":null,"stop":null,"seed":null,"tools":null,"n":null,
      "logit_bias":null,"stream":null,"stream_options":null,"user":"u",
      "max_tokens":null,"logprobs":null,"nobody_knows":{"a":[1]})");
  ASSERT_TRUE(request.ok()) << request.status();
  ExpectSame(request->client.request.sampling, SamplingParams());
  EXPECT_FALSE(request->has_max_tokens);
}

TEST(OpenAiRequestTest, TheNewNameOfMaxTokensWins) {
  EXPECT_EQ(Chat(R"(,"max_tokens":5)")->client.request.stop.max_tokens, 5);
  EXPECT_EQ(Chat(R"(,"max_tokens":5,"max_completion_tokens":6.0)")
                ->client.request.stop.max_tokens,
            6);
}

TEST(OpenAiRequestTest, ReadsMessagesOfAllForms) {
  const auto request = ParseChatRequest(R"({"messages":[
      {"role":"user","content":[{"type":"text","text":"a"},
                                {"type":"text","text":"b"}],"name":"n"},
      {"role":"assistant","content":null,"tool_calls":[{"id":"1"}],
       "refusal":null},
      {"role":"tool","tool_call_id":"1","content":""}]})");
  ASSERT_TRUE(request.ok()) << request.status();
  const ChatInput& chat = ChatOf(*request);
  EXPECT_THAT(chat.messages[0].parts, ElementsAre("a", "b"));
  EXPECT_EQ(chat.messages[0].fields, R"({"name":"n"})");
  EXPECT_TRUE(chat.messages[1].null_content);
  EXPECT_EQ(chat.messages[1].fields, R"({"tool_calls":[{"id":"1"}]})");
  EXPECT_FALSE(chat.messages[2].null_content);
  EXPECT_EQ(chat.messages[2].fields, R"({"tool_call_id":"1"})");
}

TEST(OpenAiRequestTest, ReadsTemplateOptions) {
  const auto request = Chat(
      R"(,"continue_final_message":true,"documents":[{"b":1,"a":2}],
      "chat_template_kwargs":{"enable_thinking":false})");
  ASSERT_TRUE(request.ok()) << request.status();
  const ChatOptions& options = ChatOf(*request).options;
  EXPECT_TRUE(options.continue_final_message);
  EXPECT_FALSE(options.add_generation_prompt);
  EXPECT_EQ(options.documents, R"([{"b":1,"a":2}])");
  EXPECT_EQ(options.kwargs, R"({"enable_thinking":false})");
}

TEST(OpenAiRequestTest, ReadsPromptsOfAllForms) {
  auto prompts = [](const std::string& prompt) {
    return ParseCompletionRequest(absl::StrCat("{\"prompt\":", prompt, "}"))
        ->prompts;
  };
  using Ids = std::vector<TokenId>;
  EXPECT_EQ(std::get<std::string>(prompts("\"a\"")[0]), "a");
  EXPECT_EQ(prompts(R"(["a","b"])").size(), 2u);
  EXPECT_EQ(std::get<Ids>(prompts("[4,5]")[0]), (Ids{4, 5}));
  EXPECT_EQ(std::get<Ids>(prompts("[[4],[5,6]]")[1]), (Ids{5, 6}));
}

TEST(OpenAiRequestTest, LogprobsAreSpeltTwoWays) {
  EXPECT_EQ(Chat("")->client.request.sampling.logprobs, -1);
  EXPECT_EQ(Chat(R"(,"logprobs":false)")->client.request.sampling.logprobs, -1);
  EXPECT_EQ(Chat(R"(,"logprobs":true)")->client.request.sampling.logprobs, 0);
  EXPECT_EQ(Chat(R"(,"logprobs":true,"top_logprobs":4)")
                ->client.request.sampling.logprobs,
            4);
  const auto completion = Completion(R"(,"logprobs":3,"echo":true)");
  EXPECT_EQ(completion->client.request.sampling.logprobs, 3);
  EXPECT_EQ(completion->client.request.prompt_logprobs, 3);
  EXPECT_FALSE(completion->answer.prompt_logprobs);
}

TEST(OpenAiRequestTest, BestOfAndBeams) {
  EXPECT_EQ(Completion(R"(,"n":2,"best_of":2)")->client.request.best_of, 0);
  EXPECT_EQ(Completion(R"(,"n":2,"best_of":4)")->client.request.best_of, 4);
  ExpectRefused(Completion(R"(,"n":2,"best_of":1)").status(), "best_of");
  const auto beams = Completion(
      R"(,"n":2,"best_of":4,"use_beam_search":true,"length_penalty":0.5)");
  EXPECT_EQ(beams->client.request.beam.width, 4);
  EXPECT_EQ(beams->client.request.beam.length_penalty, 0.5f);
  EXPECT_EQ(beams->client.request.best_of, 0);
}

TEST(OpenAiRequestTest, WrongTypesAreNamed) {
  for (const auto& [more, field] :
       std::vector<std::pair<const char*, const char*>>{
           {R"("temperature":"hot")", "temperature"},
           {R"("temperature":1e300)", "temperature"},
           {R"("n":1.5)", "n"},
           {R"("n":3000000000)", "n"},
           {R"("seed":18446744073709551615)", "seed"},
           {R"("max_tokens":-1)", "max_tokens"},
           {R"("stop":[1])", "stop[0]"},
           {R"("stop":{})", "stop"},
           {R"("logit_bias":[])", "logit_bias"},
           {R"("logit_bias":{"x":1})", "logit_bias.x"},
           {R"("logit_bias":{"1":"y"})", "logit_bias.1"},
           {R"("logit_bias":{"1":1,"01":2})", "logit_bias"},
           {R"("allowed_token_ids":[-1])", "allowed_token_ids[0]"},
           {R"("mirostat":1)", "mirostat"},
           {R"("use_beam_search":true,"beam_width":0)", "beam_width"},
           {R"("stages":["top_k","top-k"])", "stages[1]"},
           {R"("stages":[""])", "stages[0]"},
           {R"("stream":1)", "stream"},
           {R"("stream_options":{})", "stream_options"},
           {R"("stream":true,"prompt_logprobs":1)", "prompt_logprobs"},
           {R"("response_format":"text")", "response_format"}}) {
    ExpectRefused(Chat(absl::StrCat(",", more)).status(), field);
    ExpectRefused(Completion(absl::StrCat(",", more)).status(), field);
  }
}

TEST(OpenAiRequestTest, ManyBiasesAreRefusedBeforeTheyAreLookedUp) {
  std::string biases;
  for (int id = 0; id < 1025; ++id) {
    absl::StrAppend(&biases, id == 0 ? "" : ",", "\"", id, "\":1");
  }
  ExpectRefused(Chat(absl::StrCat(",\"logit_bias\":{", biases, "}")).status(),
                "logit_bias");
}

TEST(OpenAiRequestTest, WrongMessagesAreNamed) {
  for (const auto& [message, field] :
       std::vector<std::pair<const char*, const char*>>{
           {"1", "messages[1]"},
           {R"({"content":"x"})", "messages[1].role"},
           {R"({"role":"user"})", "messages[1].content"},
           {R"({"role":"user","content":5})", "messages[1].content"},
           {R"({"role":"user","content":["x"]})", "messages[1].content[0]"},
           {R"({"role":"user","content":[{"type":"text"}]})",
            "messages[1].content[0].text"}}) {
    const std::string body = absl::StrCat(
        R"({"messages":[{"role":"user","content":"a"},)", message, "]}");
    ExpectRefused(ParseChatRequest(body).status(), field);
    ExpectRefused(ParseTokenizeRequest(body).status(), field);
  }
}

TEST(OpenAiRequestTest, WhatComesLaterIsRefusedByName) {
  for (const auto& [more, field] :
       std::vector<std::pair<const char*, const char*>>{
           {R"("tools":[{}])", "tools"},
           {R"("functions":[{}])", "functions"},
           {R"("tool_choice":"required")", "tool_choice"},
           {R"("response_format":{"type":"json_schema"})", "response_format"},
           {R"("guided_regex":"a+")", "guided_regex"},
           {R"("audio":{"voice":"x"})", "audio"},
           {R"("modalities":["text","audio"])", "modalities"}}) {
    ExpectRefused(Chat(absl::StrCat(",", more)).status(), field,
                  ErrorReason::kFieldNotImplemented);
  }
  ExpectRefused(Completion(R"(,"suffix":"x")").status(), "suffix",
                ErrorReason::kFieldNotImplemented);
  for (const char* more :
       {R"("tools":[])", R"("tool_choice":"none")", R"("tool_choice":"auto")",
        R"("modalities":["text"])", R"("response_format":{"type":"text"})"}) {
    EXPECT_TRUE(Chat(absl::StrCat(",", more)).ok()) << more;
  }
}

TEST(OpenAiRequestTest, Tokenizing) {
  const auto text = ParseTokenizeRequest(
      R"({"prompt":"x","add_special_tokens":false,"return_token_strs":true})");
  EXPECT_EQ(std::get<std::string>(text->input), "x");
  EXPECT_FALSE(text->add_special_tokens);
  EXPECT_TRUE(text->return_token_texts);
  ExpectRefused(ParseTokenizeRequest("{}").status(), "prompt");
  EXPECT_THAT(ParseDetokenizeRequest(R"({"tokens":[1,2]})")->ids,
              ElementsAre(1, 2));
  ExpectRefused(ParseDetokenizeRequest("{}").status(), "tokens");
}

}  // namespace
}  // namespace penstock
