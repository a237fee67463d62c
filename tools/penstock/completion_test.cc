#include "tools/penstock/completion.h"

#include <string>

#include "gtest/gtest.h"

namespace penstock {
namespace {

v1::GenerateResponse Frame(uint32_t first_index,
                           std::initializer_list<const char*> texts) {
  v1::GenerateResponse response;
  v1::TokenFrame& frame = *response.mutable_frame();
  frame.set_first_index(first_index);
  int32_t id = 10 + static_cast<int32_t>(first_index);
  for (const char* text : texts) {
    v1::FrameToken& token = *frame.add_tokens();
    token.set_id(id++);
    token.set_text(text);
  }
  return response;
}

v1::GenerateResponse LastFrame(uint32_t first_index) {
  v1::GenerateResponse response = Frame(first_index, {"!"});
  v1::TokenFrame& frame = *response.mutable_frame();
  frame.set_finish(v1::FINISH_REASON_LENGTH);
  frame.set_final_text("held");
  frame.mutable_usage()->set_prompt_tokens(7);
  frame.mutable_usage()->set_completion_tokens(4);
  frame.mutable_timings()->set_prefill_us(1500);
  frame.mutable_transfer()->set_transport("shm");
  frame.mutable_transfer()->set_bytes_moved(4096);
  return response;
}

TEST(CompletionTest, AddsUpFrames) {
  Completion completion;
  v1::GenerateResponse first = Frame(0, {"a"});
  first.set_request_id("r-1");
  first.mutable_placement()->set_prefill("p");
  first.mutable_placement()->set_decode("d");
  EXPECT_EQ(*completion.Add(first), "a");
  EXPECT_EQ(*completion.Add(Frame(1, {"", "bc"})), "bc");
  EXPECT_FALSE(completion.CheckFinished().ok());
  EXPECT_EQ(*completion.Add(LastFrame(3)), "!held");
  EXPECT_TRUE(completion.CheckFinished().ok());
  EXPECT_EQ(completion.tokens(), 4);

  EXPECT_EQ(completion.ToJson(), nlohmann::json::parse(R"({
    "choices": [{"text": "abc!held", "token_ids": [10, 11, 12, 13],
                 "logprobs": [], "finish_reason": "length"}],
    "usage": {"prompt_tokens": 7, "cached_tokens": 0, "completion_tokens": 4},
    "timings_ms": {"queue": 0.0, "prefill": 1.5, "transfer": 0.0,
                   "first_token": 0.0, "decode": 0.0},
    "placement": {"prefill": "p", "decode": "d", "transport": "shm",
                  "bytes_moved": 4096, "blocks_moved": 0, "blocks_shared": 0,
                  "decode_prompt_tokens": 0},
    "request_id": "r-1"})"));
}

TEST(CompletionTest, DescribesWhereAndHowFast) {
  Completion completion;
  v1::GenerateResponse first = Frame(0, {"a", "b", "c"});
  first.mutable_placement()->set_prefill("p");
  first.mutable_placement()->set_decode("d");
  ASSERT_TRUE(completion.Add(first).ok());
  v1::GenerateResponse last = LastFrame(3);
  last.mutable_frame()->mutable_timings()->set_first_token_us(12'000);
  last.mutable_frame()->mutable_timings()->set_decode_us(30'000);
  ASSERT_TRUE(completion.Add(last).ok());
  EXPECT_EQ(completion.Describe(),
            "7 prompt tokens (0 cached), 4 written; p -> d by shm, 4096 KV "
            "bytes moved; first token after 12 ms, then 100 tokens/s");
}

TEST(CompletionTest, KeepsLogprobs) {
  v1::GenerateResponse response = Frame(0, {"a"});
  v1::TokenLogprobs& logprobs =
      *response.mutable_frame()->mutable_tokens(0)->mutable_logprobs();
  logprobs.set_logprob(-0.5);
  v1::TopLogprob& top = *logprobs.add_top();
  top.set_id(3);
  top.set_logprob(-0.25);
  Completion completion;
  ASSERT_TRUE(completion.Add(response).ok());
  EXPECT_EQ(completion.ToJson()["choices"][0]["logprobs"],
            nlohmann::json::parse(R"([{"id": 10, "logprob": -0.5,
                "top": [{"id": 3, "logprob": -0.25}]}])"));
  EXPECT_EQ(FrameToJson(response)["tokens"][0]["top"][0]["id"], 3);
}

TEST(CompletionTest, KeepsThePromptsLogprobs) {
  auto scored = [](uint32_t first_index, float logprob) {
    v1::GenerateResponse response = Frame(0, {});
    v1::PromptLogprobs& prompt = *response.mutable_frame()->mutable_prompt();
    prompt.set_first_index(first_index);
    prompt.add_tokens()->set_logprob(logprob);
    return response;
  };
  Completion completion;
  ASSERT_TRUE(completion.Add(scored(1, -0.5)).ok());
  ASSERT_TRUE(completion.Add(scored(2, -2)).ok());
  EXPECT_EQ(completion.ToJson()["prompt_logprobs"],
            nlohmann::json::parse(R"([null, {"logprob": -0.5, "top": []},
                                      {"logprob": -2.0, "top": []}])"));
  EXPECT_EQ(completion.Add(scored(2, -2)).status().code(),
            absl::StatusCode::kDataLoss);
  EXPECT_EQ(FrameToJson(scored(7, -1))["prompt_logprobs"],
            nlohmann::json::parse(
                R"({"first_index": 7,
                    "tokens": [{"logprob": -1.0, "top": []}]})"));
}

TEST(CompletionTest, NoticesLossAndDoubling) {
  Completion completion;
  ASSERT_TRUE(completion.Add(Frame(0, {"a", "b"})).ok());
  Completion lost = completion;
  EXPECT_EQ(lost.Add(Frame(3, {"d"})).status().code(),
            absl::StatusCode::kDataLoss);
  Completion doubled = completion;
  EXPECT_EQ(doubled.Add(Frame(1, {"b"})).status().code(),
            absl::StatusCode::kDataLoss);
  Completion ended = completion;
  ASSERT_TRUE(ended.Add(LastFrame(2)).ok());
  EXPECT_EQ(ended.Add(Frame(3, {"x"})).status().code(),
            absl::StatusCode::kInternal);
}

TEST(CompletionTest, RefusesAbsurdSamples) {
  v1::GenerateResponse response = Frame(0, {"a"});
  response.mutable_frame()->set_sample(4'000'000'000u);
  Completion completion;
  EXPECT_EQ(completion.Add(response).status().code(),
            absl::StatusCode::kInternal);
}

}  // namespace
}  // namespace penstock
