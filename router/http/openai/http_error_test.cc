#include "router/http/openai/http_error.h"

#include "common/peer/error_reason.h"
#include "gtest/gtest.h"

namespace penstock {
namespace {

TEST(HttpErrorTest, ReasonsHaveTheStatusThatClientsExpect) {
  const struct {
    ErrorReason reason;
    int status;
    const char* code;
    bool retry_helps;
  } kCases[] = {
      {ErrorReason::kInvalidField, 400, "invalid_value", false},
      {ErrorReason::kPromptTooLong, 400, "context_length_exceeded", false},
      {ErrorReason::kFieldNotImplemented, 400, "unsupported_parameter", false},
      {ErrorReason::kKvTooSmall, 400, "kv_too_small", false},
      {ErrorReason::kModelNotFound, 404, "model_not_found", false},
      {ErrorReason::kQueueFull, 429, "queue_full", true},
      {ErrorReason::kNoWorkers, 503, "no_workers", true},
      {ErrorReason::kDraining, 503, "draining", true},
      {ErrorReason::kDeadline, 504, "deadline", false},
      {ErrorReason::kInternal, 500, "internal", false},
  };
  for (const auto& found : kCases) {
    const HttpError error =
        ToHttpError(MakeError(found.reason, "why"), AnswerKind::kChat);
    EXPECT_EQ(error.status, found.status) << found.code;
    EXPECT_EQ(error.body["error"]["code"], found.code);
    EXPECT_EQ(error.body["error"]["message"], "why");
    EXPECT_TRUE(error.body["error"]["param"].is_null());
    EXPECT_EQ(error.retry_helps, found.retry_helps) << found.code;
  }
}

TEST(HttpErrorTest, FieldsAreSpeltAsTheClientDid) {
  auto param = [](const char* field, AnswerKind kind) {
    const HttpError error = ToHttpError(
        MakeError(ErrorReason::kInvalidField,
                  std::string(field) + " is 9; it must be 1", field),
        kind);
    const std::string spelt = error.body["error"]["param"];
    EXPECT_EQ(error.body["error"]["message"], spelt + " is 9; it must be 1");
    return spelt;
  };
  EXPECT_EQ(param("sampling.top_p", AnswerKind::kChat), "top_p");
  EXPECT_EQ(param("stop.max_tokens", AnswerKind::kChat), "max_tokens");
  EXPECT_EQ(param("stop.strings", AnswerKind::kChat), "stop");
  EXPECT_EQ(param("sampling.dry_range", AnswerKind::kChat),
            "dry_penalty_last_n");
  EXPECT_EQ(param("sampling.logprobs", AnswerKind::kChat), "top_logprobs");
  EXPECT_EQ(param("sampling.logprobs", AnswerKind::kCompletion), "logprobs");
  EXPECT_EQ(param("sampling.logit_bias[5]", AnswerKind::kChat),
            "logit_bias[5]");
  EXPECT_EQ(param("messages[0].role", AnswerKind::kChat), "messages[0].role");
}

TEST(HttpErrorTest, AdviceWhenToComeBack) {
  const HttpError error = ToHttpError(
      MakeError(ErrorReason::kQueueFull, "full", "", absl::Seconds(3)),
      AnswerKind::kChat);
  EXPECT_EQ(error.retry_after, absl::Seconds(3));
  EXPECT_EQ(error.body["error"]["type"], "rate_limit_error");
}

}  // namespace
}  // namespace penstock
